(* OCaml: exceptions through many frames, closures, the collector, strings. *)
exception Deep of int
let rec deep n = if n = 0 then raise (Deep 7) else 1 + deep (n - 1)
let () =
  let caught = ref 0 in
  for i = 0 to 30 do (try ignore (deep i) with Deep n -> caught := !caught + n) done;
  let table = Hashtbl.create 10 in
  for i = 0 to 20000 do Hashtbl.replace table (i mod 97) (string_of_int i :: []) done;
  let all = List.sort compare (Hashtbl.fold (fun k v l -> (k, List.length v) :: l) table []) in
  Printf.printf "%d %d %s\n" !caught (List.length all) (String.concat "," (List.map (fun (k, _) -> string_of_int k) all));
  (try ignore (List.find (fun x -> x > 5) [1; 2]) with Not_found -> print_endline "none");
  exit 4
