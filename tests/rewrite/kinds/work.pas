{ Pascal: exceptions, classes, nested procedures, sets and strings. }
program work;
{$mode objfpc}{$H+}
uses SysUtils;
type
  TShape = class function Area: Double; virtual; abstract; end;
  TSquare = class(TShape) a: Double; function Area: Double; override; end;
function TSquare.Area: Double; begin Result := a * a; end;
function Deep(n: Integer): Integer;
begin
  if n = 0 then raise Exception.Create('deep');
  Result := Deep(n - 1) + 1;
end;
var i, caught: Integer; s: TSquare; total: Double; text: string; z: Integer;
procedure Add(n: Integer);
  procedure Inner; begin caught := caught + n; end;
begin Inner; end;
begin
  caught := 0; total := 0;
  for i := 0 to 20 do
    try Deep(i) except on e: Exception do Add(Length(e.Message)) end;
  for i := 1 to 10 do begin s := TSquare.Create; s.a := i; total := total + s.Area; s.Free; end;
  text := '';
  for i := 1 to 20 do text := text + IntToStr(i * i mod 7);
  z := caught - caught;
  try i := 5 div z; except on e: EDivByZero do WriteLn('division') end;
  WriteLn(caught, ' ', total:0:2, ' ', text);
  Halt(6);
end.
