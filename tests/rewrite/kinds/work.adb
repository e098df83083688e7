--  Ada: tasks with a rendezvous, a protected object, exceptions that are raised and handled, nested procedures.
with Ada.Text_IO; use Ada.Text_IO;
procedure Work is
   Odd : exception;
   protected Sum is
      procedure Add (N : Integer);
      function Get return Integer;
   private
      Total : Integer := 0;
   end Sum;
   protected body Sum is
      procedure Add (N : Integer) is
      begin
         Total := Total + N;
      end Add;
      function Get return Integer is
      begin
         return Total;
      end Get;
   end Sum;
   task type Worker is
      entry Start (N : Integer);
      entry Done;
   end Worker;
   task body Worker is
      Mine : Integer := 0;
   begin
      accept Start (N : Integer) do
         Mine := N;
      end Start;
      for I in 1 .. 50 loop
         begin
            if (I + Mine) mod 3 = 0 then
               raise Odd with Integer'Image (I);
            end if;
            Sum.Add (I);
         exception
            when Odd => Sum.Add (-1);
         end;
      end loop;
      accept Done;
   end Worker;
   Workers : array (1 .. 4) of Worker;
   Zero : Integer := 0;
begin
   for I in Workers'Range loop
      Workers (I).Start (I);
   end loop;
   for I in Workers'Range loop
      Workers (I).Done;
   end loop;
   Put_Line (Integer'Image (Sum.Get));
   begin
      Zero := 5 / Zero;
      Put_Line (Integer'Image (Zero));
   exception
      when Constraint_Error => Put_Line ("constraint");
   end;
end Work;
