#!lua flags=allow-oom
-- promote: due jobs move from scheduled to ready; bare members get a record; nonsense becomes dead
-- letters.
-- USES  clock, run, tombstone, tags, group, dead-letter, nonsense, adopt, odd-member, advertise
-- KEYS  1 leader  2 scheduled  3 ready  4 jobs  5 runs  6 dead  7 done  8 meta  9 stale  10 tags
-- ARGV  1 now  2 term  3 lease  4 limit  5 cap
--       now ms, '' = server time; term: the leader's value; lease ms, '' = it was renewed lately;
--       limit: members per pass; cap: undelivered entries
-- RETURN {state, now, next, backlog, dead letters, moved, then pairs: lateness ms, count}
--        state moved | paused | capped; next: next due time, ms, '' = none; a lateness may come
--        twice. {'fenced'} when the term is not the leader's.
-- Entries are added before exactly the ids read are removed. Payloads of managed jobs are never
-- touched, so a pass of 500 costs the same for 10 bytes and for 256 KiB.
-- Most passes move one job: so the first read is of two members, whether they are due or not, and
-- the second is often the next due time. Most members are plain, ours with a due time of thirteen
-- digits: they are taken as they are, with the due time as the text that Redis gave.
-- Then four, eight and twelve members are read at a time, fewer where they are large, and a pass
-- ends when one more as large as the largest would take it over 1 MiB of them and of records that
-- become dead letters. The first is always taken; what is due then waits for the next pass.
local leader, scheduled, ready, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[8]
local keys = { scheduled = scheduled, jobs = KEYS[4], runs = KEYS[5], dead = KEYS[6],
  done = KEYS[7], meta = meta, stale = KEYS[9], tags = KEYS[10] }
local now, term, lease = clock(ARGV[1]), ARGV[2], ARGV[3]
local limit, cap = tonumber(ARGV[4]), tonumber(ARGV[5])
-- @fence
if redis.call('GET', leader) ~= term then return { 'fenced' } end
if lease ~= '' then
  redis.call('PEXPIRE', leader, lease)
end

local state = redis.call('HMGET', meta, 'paused', 'wake', 'n.promoted')
local paused, advertised, promoted = state[1], state[2], state[3]
local backlog = undeliveredIn(ready, cap)
local room = paused and 0 or math.min(limit, cap - backlog)
local taken, bytes, largest, step, moved, deadLetters, adopted = 0, 0, 1, 1, 0, 0, 0
local reply, late, at, waits = { 'moved', now, '', 0, 0, 0 }, nil, 0, false

local function give(member, due, text)
  addReady(ready, member, text)
  moved = moved + 1
  if due ~= late then
    late, at = due, #reply + 2
    reply[at - 1], reply[at] = now - due, 0
  end
  reply[at] = reply[at] + 1
end

local function odd(member, score)
  local fate, value = settleOdd(keys, now, member, score)
  if fate == 'buried' then
    bytes, deadLetters = bytes + value, deadLetters + 1
  elseif fate == 'waits' then
    waits = true
  else
    adopted = adopted + (fate == 'adopted' and 1 or 0)
    give(member, value, ('%.0f'):format(value))
  end
  return fate ~= 'waits'
end

-- @room
local more, isKnown, head, text, due = room > 0, false, nil, nil, nil
-- @endless-steps
while more do
  step = math.min(step * 2, 12, math.max(1, math.floor((1048576 - bytes) / largest)))
  local found, gone = taken == 0 and redis.call('ZRANGE', scheduled, 0, step - 1, 'WITHSCORES')
    or redis.call('ZRANGEBYSCORE', scheduled, '-inf', now, 'WITHSCORES', 'LIMIT', 0, step), {}
  -- @endless-more
  more = #found == 2 * step
  isKnown = taken == 0 and not more
  -- @move-each
  for nth = 1, #found, 2 do
    local member = found[nth]
    due, text = found[nth + 1] == text and due or tonumber(found[nth + 1]), found[nth + 1]
    largest = math.max(largest, #member)
    if due > now or taken == room or taken > 0 and bytes + largest > 1048576 then
      head, isKnown, more = due, true, false
      break
    end
    taken, bytes = taken + 1, bytes + #member
    -- @plain
    if #text == 13 and due >= 1e12 and #member <= 200 and member:find('^j:[!-~]*$') then
      give(member, due, text)
      gone[#gone + 1] = member
    elseif odd(member, due) then
      gone[#gone + 1] = member
    end
  end
  if #gone > 0 then
    -- @remove-moved
    redis.call('ZREM', scheduled, unpack(gone))
  end
end
ensureGroup(ready, backlog + moved)
if not isKnown or waits then
  head = tonumber(redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2])
end

head = head and ('%.0f'):format(math.ceil(math.max(0, math.min(head, 9007199254740991)))) or ''
local look = room <= 0 and '0' or head ~= '' and head or '9007199254740991'
advertise(meta, look, advertised, moved, promoted)
if adopted > 0 then
  redis.call('HINCRBY', meta, 'n.adopted', adopted)
end
reply[1] = room > 0 and 'moved' or paused and 'paused' or 'capped'
reply[3], reply[4], reply[5], reply[6] = head, backlog + moved, deadLetters, moved
return reply
