--  What told.c is in C: ranges, arrays with bounds, nested procedures.
with Ada.Text_IO; use Ada.Text_IO;
procedure Told is
   Opaque : Integer := 0;
   type Numbers is array (Positive range <>) of Integer;
   type Colour is (Red, Green, Blue);

   procedure Seen (V : Integer) is
   begin
      Opaque := Opaque + V;
   end Seen;
   pragma No_Inline (Seen);

   function Folded (List : Numbers; Start : Integer; Factor : Long_Float; Which : Colour) return Integer is
      Total : Integer := Start;
      Half : Long_Float := Factor / 2.0;
   begin
      for I in List'Range loop
         declare
            Weight : constant Integer := List (I) * I;
         begin
            Total := Total + Weight;
            Seen (Total);
         end;
      end loop;
      if Which = Green then
         Half := Half + 1.0;
      end if;
      Seen (Integer (Half));
      return Total + Integer (Half);
   end Folded;
   pragma No_Inline (Folded);

   function Deep (N : Natural; Carried : Long_Integer) return Long_Integer is
      Mine : constant Long_Integer := Carried * 2 + Long_Integer (N);
      Below : Long_Integer := 1;
   begin
      if N > 0 then
         Below := Deep (N - 1, Mine);
      end if;
      Seen (Integer (Below mod 100));
      return Mine + Below;
   end Deep;
   pragma No_Inline (Deep);

   type Form is (Round, Square);
   type Shape (What : Form := Round) is record
      Weight : Long_Integer := 21;
      case What is
         when Round => Radius : Integer := 22;
         when Square => Side, Height : Long_Integer := 23;
      end case;
   end record;
   type Thing is tagged record
      Size : Integer := 24;
   end record;
   type Larger is new Thing with record
      More : Integer := 25;
   end record;

   procedure Shaped (S : Shape; L : Larger'Class; N : Integer) is
   begin
      Seen (N + Integer (S.Weight) + L.More);
   end Shaped;
   pragma No_Inline (Shaped);

   Flat : Shape (Square);
   Big : Larger;
   Sum : Integer := 0;
begin
   Shaped (Flat, Big, 26);
   for Turn in 1 .. 3 loop
      Sum := Sum + Folded ((3, 50, 700, Turn), Turn, Long_Float (Turn), Colour'Val (Turn - 1));
      Sum := Sum + Integer (Deep (4, Long_Integer (Turn)) mod 1000);
   end loop;
   Put_Line (Sum'Image & Opaque'Image);
end Told;
