#!lua flags=allow-oom
-- await: somebody waits for the end of jobs, and is told by whoever ends one. Many jobs per call.
-- USES  run, tombstone
-- KEYS  1 scheduled  2 jobs  3 runs  4 meta
-- ARGV  1 generation  then per job: member
-- RETURN one text per job: over <outcome letter> <token> | waits | unknown; or
--        {'moved', generation} when the partition has another generation
-- A job that was never started gets a run for the mark. A bare member that was put, or put again,
-- and was not promoted since has no record to speak of: it waits without a mark. The mark stays
-- until the job is over or gets a new life. Who waits makes the same call every 5 s, so that a
-- message that was lost and a mark that is gone cost no more than that.
local scheduled, jobs, runs, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local generation, replies = ARGV[1], {}
local current = redis.call('HGET', meta, 'generation') or '0'
if current ~= generation then return { 'moved', current } end

local function await(member)
  local tombstone, length = tombstoneOf(jobs, member)
  local isPut = member:sub(1, 2) ~= 'j:' and redis.call('ZSCORE', scheduled, member)
  if isPut and (tombstone or length == 0) then return 'waits' end
  if tombstone then return ('over %s %s'):format(tombstone:match('^%.(%l)%w+ %S+ (%d+)')) end
  if length == 0 then return 'unknown' end
  local run = runOf(redis.call('HGET', runs, member) or NEVER_RAN)
  if run and not hasBit(run.cancel, WAITED) then
    run.cancel = withBit(run.cancel, WAITED)
    redis.call('HSET', runs, member, runText(run))
  end
  return 'waits'
end

for at = 2, #ARGV do
  replies[#replies + 1] = await(ARGV[at])
end
return replies
