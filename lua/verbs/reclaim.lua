#!lua flags=allow-oom
-- reclaim: entries of a consumer that is believed dead become the caller's. A crash is counted for
-- those it had started.
-- USES  clock, run, history
-- KEYS  1 ready  2 runs  3 meta
-- ARGV  1 now  2 owner  3 consumer  4 idle  then per wish: entry
--       now ms, '' = server time; owner: the dead one; consumer: the caller; idle ms the entry must
--       have
-- RETURN per claimed entry, flat: entry, member, due; after 1 MiB of entries and runs the rest
--        stays where it is
-- The line of a crash says when the dead worker began (b) and for how long it was not heard of (i).
-- Heartbeats only nominated the owner. What decides is min-idle: a living worker extends its
-- entries well within it. Token and entry stay in the run, so a late complete of the old start
-- still wins until the next start.
local ready, runs, meta = KEYS[1], KEYS[2], KEYS[3]
local now, owner, consumer, idle = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local reply, crashes, bytes = {}, 0, 0

-- Idle ms of an entry that the owner still holds.
local function heldFor(entry)
  local held = redis.call('XPENDING', ready, 'workers', 'IDLE', idle, entry, entry, 1, owner)[1]
  return held and held[3]
end

local function countCrash(entry, member, idleMs)
  local text = redis.call('HGET', runs, member) or ''
  bytes = bytes + #text
  local run = runOf(text)
  if not run or run.entry ~= entry or run.owner ~= owner then return end
  local line = ('{"t":%.0f,"a":%s,"k":"crash","m":"worker %s was lost","b":%.0f,"i":%.0f}')
    :format(now, run.attempts, owner, math.floor(run.token / 1000), idleMs)
  run.crashes, run.owner, run.history = run.crashes + 1, '-', lengthened(run.history, line)
  redis.call('HSET', runs, member, runText(run))
  crashes = crashes + 1
end

local function claim(entry, idleMs)
  local found = redis.call('XRANGE', ready, entry, entry)[1]
  if not found then
    redis.call('XACK', ready, 'workers', entry)
    return
  end
  local fields = {}
  for at = 1, #found[2], 2 do
    fields[found[2][at]] = found[2][at + 1]
    bytes = bytes + #found[2][at + 1]
  end
  local member, due = fields.member or '', fields.due or '0'
  -- @count-crash
  countCrash(entry, member, idleMs)
  -- @claim-entry
  redis.call('XCLAIM', ready, 'workers', consumer, idle, entry, 'JUSTID')
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = entry, member, due
end

for index = 5, #ARGV do
  local entry = ARGV[index]
  -- @bytes
  local idleMs = bytes <= 1048576 and heldFor(entry)
  if idleMs then
    claim(entry, idleMs)
  end
end
if #reply > 0 then
  redis.call('HINCRBY', meta, 'n.reclaimed', #reply / 3)
end
if crashes > 0 then
  redis.call('HINCRBY', meta, 'n.crashed', crashes)
end
return reply
