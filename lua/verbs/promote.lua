#!lua flags=allow-oom
-- promote: due jobs move from scheduled to ready; bare members get a record; nonsense becomes dead
-- letters.
-- USES  clock, run, tombstone, group, dead-letter, nonsense, adopt
-- KEYS  1 leader  2 scheduled  3 ready  4 jobs  5 runs  6 dead  7 done  8 meta  9 stale
-- ARGV  1 now  2 term  3 lease  4 limit  5 cap
--       now ms, '' = server time; term: the leader's value; lease ms; limit: members per pass;
--       cap: undelivered entries
-- RETURN {state, now, next, backlog, dead letters, moved, then pairs: lateness ms, count}
--        state moved | paused | capped; next: next due, whole ms, '' = none. {'fenced'} when the
--        term is not the leader's.
-- Entries are added before exactly the ids read are removed. Payloads of managed jobs are never
-- touched, so a pass of 500 costs the same for 10 bytes and for 256 KiB. A bare member that runs
-- now waits in the zset for its next turn.
-- Members are read one, two, four and then eight at a time, fewer where they are large, and a pass
-- ends when one more as large as the largest would take it over 1 MiB of them and of records that
-- become dead letters. The first is always taken; what is due then waits for the next pass.
local leader, scheduled, ready, jobs, runs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead, done, meta, stale = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local keys = { jobs = jobs, runs = runs, dead = dead, done = done, meta = meta, stale = stale }
local now, term, lease = clock(ARGV[1]), ARGV[2], ARGV[3]
local limit, cap = tonumber(ARGV[4]), tonumber(ARGV[5])
-- @fence
if redis.call('GET', leader) ~= term then return { 'fenced' } end
redis.call('PEXPIRE', leader, lease)
if redis.call('EXISTS', ready) == 0 then
  redis.call('XGROUP', 'CREATE', ready, 'workers', '0', 'MKSTREAM')
end

local backlog = redis.call('XLEN', ready)
local group = backlog >= cap and groupOf(ready)
backlog = backlog - (group and group.pending or 0)
local paused = redis.call('HGET', meta, 'paused')
local room = paused and 0 or math.min(limit, cap - backlog)
local moved, deadLetters, late, adopted = 0, 0, {}, 0
local taken, bytes, largest, step = 0, 0, 1, 0.5

local function give(member, due)
  redis.call('XADD', ready, '*', 'member', member, 'due', ('%.0f'):format(due))
  late[now - due], moved = (late[now - due] or 0) + 1, moved + 1
end

local function leaves(member, score)
  local fault, due = faultIn(member, score), score == 0 and now or math.floor(score)
  local isManaged = not fault and member:sub(1, 2) == 'j:'
  local run = not isManaged and (runOf(redis.call('HGET', runs, member) or NEVER_RAN) or {})
  if isManaged then
    give(member, due)
  elseif fault then
    local record = run.entry == '-' and redis.call('HGET', jobs, member)
    local letter = { member = member, record = record, reason = fault }
    bytes, deadLetters = bytes + buryNonsense(keys, now, letter), deadLetters + 1
  elseif run.entry == '-' then
    adopted = adopted + adopt(keys, now, member, run, due)
    give(member, due)
  else
    redis.call('ZADD', scheduled, 'XX', now + 1000, member)
    return false
  end
  return true
end

-- @room
local more = room > 0
-- @endless-steps
while more do
  step = math.min(step * 2, 8, room - taken, math.max(1, math.floor((1048576 - bytes) / largest)))
  local due = redis.call('ZRANGEBYSCORE', scheduled, '-inf', now, 'WITHSCORES', 'LIMIT', 0, step)
  local gone, isFull = {}, false
  -- @move-each
  for at = 1, #due, 2 do
    local member = due[at]
    largest = math.max(largest, #member)
    isFull = isFull or taken > 0 and bytes + largest > 1048576
    if not isFull then
      taken, bytes = taken + 1, bytes + #member
      gone[#gone + 1] = leaves(member, tonumber(due[at + 1])) and member or nil
    end
  end
  -- @endless-more
  more = #due == 2 * step and taken < room and not isFull and bytes + largest <= 1048576
  if #gone > 0 then
    -- @remove-moved
    redis.call('ZREM', scheduled, unpack(gone))
  end
end
if moved > 0 then
  redis.call('HINCRBY', meta, 'n.promoted', moved)
end
if adopted > 0 then
  redis.call('HINCRBY', meta, 'n.adopted', adopted)
end

local head = redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
head = head and ('%.0f'):format(math.ceil(math.max(0, math.min(head, 9007199254740991))))
redis.call('HSET', meta, 'wake', room <= 0 and 0 or head or '9007199254740991')
local state = room > 0 and 'moved' or paused and 'paused' or 'capped'
local reply = { state, now, head or '', backlog + moved, deadLetters, moved }
for ms, count in pairs(late) do
  reply[#reply + 1], reply[#reply + 2] = ms, count
end
return reply
