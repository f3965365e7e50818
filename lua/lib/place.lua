-- place: which members of a sorted set come behind another of the same score.
-- GIVES   isBehind(other, member)
-- RULE    A walk remembers a score and a member and no rank: what leaves the front meanwhile shifts
--         nothing, whether or not the member is still there. Among the members of one score the
--         first one behind it is looked for by halving, and compared byte by byte, because Lua
--         compares texts by the locale of the server.
local function isBehind(other, member)
  for at = 1, math.min(#other, #member) do
    local one, two = other:byte(at), member:byte(at)
    if one ~= two then return one > two end
  end
  return #other > #member
end
