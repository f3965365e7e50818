#!lua flags=allow-oom
-- complete: running jobs are over; a tombstone is left for the done window. Many jobs per call.
-- USES  clock, run, tombstone, let-go
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta
-- ARGV  1 now  2 window  3 hold  then per job: entry, member, token
--       now ms, '' = server time; window ms of tombstones, 0 = keep none; hold 1 = leave the entry
--       with its consumer
-- RETURN one text per job: ok | cancelled (a cancel was requested, it ends cancelled) | already |
--        fenced | gone
-- Only the newest token and its entry count. A member that is in scheduled meanwhile (a foreign
-- producer put it again) stays live. `already` is this very call once more: a start whose entry was
-- handed back is fenced. Never needs memory that a full Redis would refuse.
-- Held, an entry is the proof of an acknowledgement at most once: its tombstone is not in done, so
-- no sweep can take it, and whoever asks again is answered `already` however late. The same call
-- without hold lets the entry go. If nobody makes it, the entry is reclaimed, and start drops it
-- with its tombstone.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local done, meta = KEYS[5], KEYS[6]
local now, window, hold = clock(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'

local members, seen, replies = {}, {}, {}
local tombstones, times, over, drop, gone = {}, {}, {}, {}, {}
local ended = { done = 0, cancelled = 0, adopted = 0 }
for at = 5, #ARGV, 3 do
  members[#members + 1] = ARGV[at]
end
local found = redis.call('HMGET', runs, unpack(members))
local again = redis.call('ZMSCORE', scheduled, unpack(members))

local function repeated(entry, member, token)
  local outcome, settled = settledIn(jobs, member)
  if seen[member] ~= token and settled ~= token then return 'gone' end
  local reply = ({ c = 'cancelled', d = 'already' })[outcome or 'd'] or 'gone'
  if reply ~= 'already' or not settled or hold then return reply end
  local held = redis.call('XRANGE', ready, entry, entry)[1]
  if held and held[2][2] == member then
    if window > 0 then
      redis.call('ZADD', done, now, member)
    else
      drop[#drop + 1] = member
    end
    gone[#gone + 1] = entry
  end
  return reply
end

for index, member in ipairs(members) do
  local entry, token = ARGV[3 * index + 1], ARGV[3 * index + 3]
  -- Flat: a table for each is slower (compare with `npm run bench:stages -- --against`).
  local last, attempts, here, cancel, asked, digest = (found[index] or ''):match(ENDING)
  local reply, isAgain = 'ok', again[index]
  if seen[member] or not last then
    reply = repeated(entry, member, token)
  elseif last ~= token or here ~= entry then
    reply = 'fenced'
  else
    local isCancelled = cancel == '1'
    local outcome, counter = isCancelled and 'c' or 'd', isCancelled and 'cancelled' or 'done'
    local isHeld = hold and not isCancelled and not isAgain
    reply = isCancelled and 'cancelled' or 'ok'
    ended[counter], ended.adopted = ended[counter] + 1, ended.adopted + (isAgain and 1 or 0)
    if isHeld or not isAgain and window > 0 then
      local tombstone = tombstoneText(outcome, asked, digest, token, attempts)
      tombstones[#tombstones + 1], tombstones[#tombstones + 2] = member, tombstone
    elseif not isAgain then
      drop[#drop + 1] = member
    end
    if not isHeld and not isAgain and window > 0 then
      times[#times + 1], times[#times + 2] = now, member
    end
    seen[member], over[#over + 1] = token, member
    gone[#gone + 1] = not isHeld and entry or nil
  end
  replies[index] = reply
end
if #tombstones > 0 then
  redis.call('HSET', jobs, unpack(tombstones))
end
if #times > 0 then
  redis.call('ZADD', done, unpack(times))
end
for name, count in pairs(ended) do
  if count > 0 then
    redis.call('HINCRBY', meta, 'n.' .. name, count)
  end
end
if #drop > 0 then
  redis.call('HDEL', jobs, unpack(drop))
end
if #over > 0 then
  redis.call('HDEL', runs, unpack(over))
end
if #gone > 0 then
  letGo(ready, unpack(gone))
end
return replies
