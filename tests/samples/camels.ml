(* What OCaml's run time does by itself: garbage collection with roots in stack frames, exceptions,
   closures. *)
module Words = Map.Make (String)

type tree = Leaf | Node of tree * int * tree

let rec build depth = if depth = 0 then Leaf else Node (build (depth - 1), depth, build (depth - 1))
let rec sum = function Leaf -> 0 | Node (l, v, r) -> sum l + v + sum r

exception Found of string

let rec search n = if n = 0 then raise (Found "deep") else 1 + search (n - 1)

let () =
  let trees = List.init 12 (fun i -> sum (build (8 + (i mod 5)))) in
  Gc.compact ();
  let words =
    List.fold_left
      (fun m i ->
        let k = "w" ^ string_of_int (i * 7919 mod 401) in
        Words.add k (i + try Words.find k m with Not_found -> 0) m)
      Words.empty (List.init 5000 Fun.id)
  in
  let found = try string_of_int (search 10000) with Found s -> s in
  Printf.printf "%d %d %s %.6f\n" (List.fold_left ( + ) 0 trees) (Words.cardinal words) found (sqrt 2.0);
  Array.sort compare (Array.init 20000 (fun i -> i * 7919 mod 20011));
  (try ignore (List.hd []) with Failure s -> print_endline s);
  exit 5
