-- lists: short ways to lists of many fields for one command, and from the reply to one.
-- GIVES   put(list, one, other): both go to the end of it; byName(list, values): a table of the
--         values, each under the name that has its place in the list
-- RULE    One command for many members costs Redis less than a command for each.
local function put(list, one, other)
  list[#list + 1], list[#list + 2] = one, other
end

local function byName(list, values)
  local found = {}
  for at, value in ipairs(values) do
    found[list[at]] = value
  end
  return found
end
