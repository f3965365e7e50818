-- charge: what an entry of ready says that it has used of a rate.
-- GIVES   chargeIn(entry, fields): {turns, at}, how many turns, and when, us
-- RULE    Only entries that were let through where jobs have costs say it: turns, a space, when.
--         Each other entry has used one turn when it was added.
local function chargeIn(entry, fields)
  for nth = 5, #fields, 2 do
    local turns, at = fields[nth + 1]:match('^(%d+) (%d+)$')
    if fields[nth] == 'cost' then
      return { turns = tonumber(turns or 1), at = tonumber(at or 0) }
    end
  end
  return { turns = 1, at = entry:match('^%d+') * 1000 }
end
