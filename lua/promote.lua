#!lua flags=allow-oom
-- promote: due jobs move from scheduled to ready; bare members get a record; nonsense becomes dead letters.
-- KEYS  1 leader  2 scheduled  3 ready  4 jobs  5 runs  6 dead  7 done  8 meta  9 stale
-- ARGV  1 now  2 term  3 lease  4 limit  5 cap
--       now ms, '' = server time; term: the leader's value; lease ms; limit: members per pass; cap: undelivered entries
-- RETURN {state, now, next, backlog, dead letters, moved, then pairs: lateness ms, count}
--        state moved | paused | capped; next: next due, whole ms, '' = none. {'fenced'} when the term is not the leader's.
-- Entries are added before exactly the ids read are removed. Payloads of managed jobs are never touched, so a pass of
-- 500 costs the same for 10 bytes and for 256 KiB. A bare member that runs now waits in the zset for its next turn;
-- one that was put again while it was ready has a second entry then, which stale notes.
-- Members are read one, two, four and then eight at a time, fewer where they are large, and a pass ends when one more as
-- large as the largest would take it over 1 MiB of them and of records that become dead letters. The first is always taken;
-- what is due then waits for the next pass. A value of more than 300 bytes is no tombstone, so it is not read.
local leader, scheduled, ready, jobs, runs, dead, done, meta, stale = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local now, term, lease, limit, cap = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
-- @fence
if redis.call('GET', leader) ~= term then return { 'fenced' } end
redis.call('PEXPIRE', leader, lease)
if redis.call('EXISTS', ready) == 0 then redis.call('XGROUP', 'CREATE', ready, 'workers', '0', 'MKSTREAM') end

local backlog = redis.call('XLEN', ready)
for _, group in ipairs(backlog >= cap and redis.call('XINFO', 'GROUPS', ready) or {}) do
  if group[2] == 'workers' then backlog = backlog - group[6] end
end
local paused = redis.call('HGET', meta, 'paused')
local room = paused and 0 or math.min(limit, cap - backlog)
-- @room
local moved, deadLetters, late, bytes, adopted, taken, largest, step, more = 0, 0, {}, 0, 0, 0, 1, 0.5, room > 0

local function bury(member, record, reason)
  local live = record and record:byte() ~= 46
  local id = redis.call('XADD', dead, '*', 'member', member, 'record', live and record or '', 'reason', reason,
    'history', '', 'token', 0, 'attempts', 0, 'generation', 0, 'at', ('%.0f'):format(now))
  redis.call('HINCRBY', meta, live and 'n.dead' or 'n.refused', 1)
  deadLetters, bytes = deadLetters + 1, bytes + (live and #record or 0)
  if not live then return end
  redis.call('ZADD', stale, ('%.0f'):format(now), member)
  -- @index-tombstone
  redis.call('ZADD', done, now, member)
  redis.call('HDEL', runs, member)
  -- @keep-tombstone
  redis.call('HSET', jobs, member, ('.x%s %s 0 0 %s'):format(record:match('^%d(%w+)') or '0', redis.sha1hex(record):sub(1, 16), id))
end

local function keptOf(member)
  local length = redis.call('HSTRLEN', jobs, member)
  if length == 0 then return 'nothing' end
  return length <= 300 and redis.call('HGET', jobs, member):byte() == 46 and 'tombstone' or 'record'
end

local function leaves(member, score)
  local managed, readable = member:sub(1, 2) == 'j:', #member <= (member:sub(1, 2) == 'j:' and 200 or 130) and #member > 0 and not member:find('[^!-~]')
  local bad = (score ~= 0 and score < 1e11) and 'bad-due' or not readable and 'bad-member'
  local run = (bad or not managed) and redis.call('HGET', runs, member) or '0 0 0 0 0 - - -'
  local entry, planned = run:match('^%d+ %d+ %d+ %d+ %d+ (%S+) %S+ (%S+)')
  if bad then bury(member, entry == '-' and redis.call('HGET', jobs, member), bad)
  elseif entry ~= '-' then redis.call('ZADD', scheduled, 'XX', now + 1000, member)
  else
    score = score == 0 and now or math.floor(score)
    local kept = not managed and keptOf(member)
    local wasReady = kept == 'record' and tonumber(planned) ~= score or kept == 'tombstone' and not redis.call('ZSCORE', done, member)
    if wasReady then redis.call('ZADD', stale, ('%.0f'):format(now), member) end
    if not managed and kept ~= 'record' then
      local rest, text = score, ''
      -- @endless
      while rest > 0 do local d = rest % 36 text = ('0123456789abcdefghijklmnopqrstuvwxyz'):sub(d + 1, d + 1) .. text rest = math.floor(rest / 36) end
      redis.call('HSET', jobs, member, '1' .. text .. ';b=1|{}')
      redis.call('ZREM', done, member)
      adopted = adopted + 1
    end
    redis.call('XADD', ready, '*', 'member', member, 'due', ('%.0f'):format(score))
    late[now - score], moved = (late[now - score] or 0) + 1, moved + 1
  end
  return bad or entry == '-'
end

-- @endless-steps
while more do
  step = math.min(step * 2, 8, room - taken, math.max(1, math.floor((1048576 - bytes) / largest)))
  local due, gone = redis.call('ZRANGEBYSCORE', scheduled, '-inf', now, 'WITHSCORES', 'LIMIT', 0, step), {}
  -- @move-each
  for at = 1, #due, 2 do
    local member = due[at]
    largest = math.max(largest, #member)
    if taken > 0 and bytes + largest > 1048576 then room = taken break end
    taken, bytes = taken + 1, bytes + #member
    if leaves(member, tonumber(due[at + 1])) then gone[#gone + 1] = member end
  end
  -- @endless-more
  more = #due == 2 * step and taken < room and bytes + largest <= 1048576
  -- @remove-moved
  if #gone > 0 then redis.call('ZREM', scheduled, unpack(gone)) end
end
if moved > 0 then redis.call('HINCRBY', meta, 'n.promoted', moved) end
if adopted > 0 then redis.call('HINCRBY', meta, 'n.adopted', adopted) end

local head = redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
head = head and ('%.0f'):format(math.ceil(math.max(0, math.min(head, 9007199254740991))))
redis.call('HSET', meta, 'wake', room <= 0 and 0 or head or '9007199254740991')
local reply = { room > 0 and 'moved' or paused and 'paused' or 'capped', now, head or '', backlog + moved, deadLetters, moved }
for ms, count in pairs(late) do reply[#reply + 1] = ms reply[#reply + 1] = count end
return reply
