-- weight: the bytes of the records of all jobs that wait or run, and how many jobs these are, kept
-- where the queue has a limit of bytes.
-- GIVES   reweigh(meta, bytes, count, sum): so many bytes and jobs more, or fewer; `sum` is the
--         field held of meta, if the caller has read it already, false where there is none;
--         unweigh(jobs, meta, sum, tombstones, drop): jobs are about to end, those at every other
--         place of `tombstones`, beginning with the first, and all of `drop`
-- RULE    A script that writes or takes away the record of a job says so, in the same step. A queue
--         without a limit of bytes has no such field, and nothing is written. Neither number gets
--         below 0: whoever forgot to count leaves that to the leader.
local function reweigh(meta, bytes, count, sum)
  if sum == nil then
    sum = redis.call('HGET', meta, 'held')
  end
  local weight, jobs = (sum or ''):match('^(%d+) (%d+)$')
  if not weight then return end
  weight, jobs = math.max(0, weight + bytes), math.max(0, jobs + count)
  redis.call('HSET', meta, 'held', ('%.0f %.0f'):format(weight, jobs))
end

local function unweigh(jobs, meta, sum, tombstones, drop)
  local bytes, count = 0, 0
  local function add(member)
    local length = redis.call('HSTRLEN', jobs, member)
    bytes, count = bytes + length, count + math.min(length, 1)
  end
  for at = 1, #tombstones, 2 do
    add(tombstones[at])
  end
  for _, member in ipairs(drop) do
    add(member)
  end
  reweigh(meta, -bytes, -count, sum)
end
