-- overlap: what becomes of an instant, while the job before may still be going, and what its
-- schedule is then.
-- GIVES   meet(jobs, known, one, member): ok | already | ended (its runs are used up) | skipped |
--         waiting; `known` says of each member whether it has a record: false, its record, or 'new'
--         when this call writes it; `one` is the schedule, and is changed: {most, runs, skipped,
--         overlap, last, waiting}
-- NEEDS   tombstone
-- RULE    Decided when it fires: the job before is over when its record is gone or a tombstone.
local function placeFor(jobs, known, one, member)
  if known[member] then return 'already' end
  if one.most > 0 and one.runs >= one.most then return 'ended' end
  if one.overlap == 'allow' or one.last == '-' then return 'ok' end
  if known[one.last] ~= 'new' then
    local tombstone, length = tombstoneOf(jobs, one.last)
    if tombstone or length == 0 then return 'ok' end
  end
  local isTaken = one.overlap == 'queue' and one.waiting ~= '-' and one.waiting ~= member
  return (one.overlap == 'skip' or isTaken) and 'skipped' or 'waiting'
end

local function meet(jobs, known, one, member)
  local reply = placeFor(jobs, known, one, member)
  if reply == 'ok' then
    known[member], one.runs = 'new', one.runs + 1
  end
  if reply == 'ok' or reply == 'already' then
    one.last = member
  end
  if reply == 'skipped' or reply == 'waiting' and one.waiting ~= '-' and one.waiting ~= member then
    one.skipped = one.skipped + 1
  end
  if reply == 'waiting' or one.waiting == member then
    one.waiting = reply == 'waiting' and member or '-'
  end
  return reply
end
