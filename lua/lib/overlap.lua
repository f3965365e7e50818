-- overlap: whether the job of an instant has its place while the one before may still be going.
-- GIVES   placeFor(jobs, one, member): ok | already | ended (its runs are used up) | skipped |
--         waiting; `one` is the schedule: {most, runs, overlap, last, waiting}
-- USED BY  fire
-- NEEDS   tombstone
-- RULE    Decided when it fires: the job before is over when its record is gone or a tombstone.
local function placeFor(jobs, one, member)
  if redis.call('HSTRLEN', jobs, member) > 0 then return 'already' end
  if one.most > 0 and one.runs >= one.most then return 'ended' end
  if one.overlap == 'allow' or one.last == '-' then return 'ok' end
  local tombstone, length = tombstoneOf(jobs, one.last)
  if tombstone or length == 0 then return 'ok' end
  local isTaken = one.overlap == 'queue' and one.waiting ~= '-' and one.waiting ~= member
  return (one.overlap == 'skip' or isTaken) and 'skipped' or 'waiting'
end
