#!lua flags=allow-oom
-- complete: running jobs are over; a tombstone is left for the done window. Many jobs per call.
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta
-- ARGV  1 now  2 window  3 hold  then per job: entry, member, token
--       now ms, '' = server time; window ms of tombstones, 0 = keep none; hold 1 = leave the entry with its consumer
-- RETURN one text per job: ok | cancelled (a cancel was requested, it ends cancelled) | already | fenced | gone
-- Only the newest token and its entry count. A member that is in scheduled meanwhile (a foreign producer put it again)
-- stays live. `already` is this very call once more: a start whose entry was handed back is fenced. Never needs memory
-- that a full Redis would refuse. Records are never read: a value of more than 300 bytes is no tombstone.
-- Held, an entry is the proof of an acknowledgement at most once: its tombstone is not in done, so no sweep can take it, and
-- whoever asks again is answered `already` however late. The same call without hold lets the entry go. If nobody makes
-- it, the entry is reclaimed, and start drops it with its tombstone.
local scheduled, jobs, runs, ready, done, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local now, window, replies, gone, members = tonumber(ARGV[1]), tonumber(ARGV[2]), {}, {}, {}
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
local hold = ARGV[3] == '1'
for at = 5, #ARGV, 3 do members[#members + 1] = ARGV[at] end
local found = redis.call('HMGET', runs, unpack(members))
local again = redis.call('ZMSCORE', scheduled, unpack(members))
local tombstones, times, over, drop, ended = {}, {}, {}, {}, { ok = 0, cancelled = 0, anew = 0 }
local seen = {}
for index, member in ipairs(members) do
  local entry, token = ARGV[3 * index + 1], ARGV[3 * index + 3]
  local last, attempts, here, cancel, asked, digest =
    (found[index] or ''):match('^(%d+) %d+ (%d+) %d+ %d+ (%S+) %S+ %S+ (%d) (%S+) (%S+)')
  local reply
  if seen[member] or not last then
    local tombstone = redis.call('HSTRLEN', jobs, member) <= 300 and redis.call('HGET', jobs, member)
    local outcome, settled = (tombstone or ''):match('^%.(%l)%w+ %S+ (%d+)')
    local mine = seen[member] == token or settled == token
    reply = mine and ({ c = 'cancelled', d = 'already' })[outcome or 'd'] or 'gone'
    local held = reply == 'already' and settled and not hold and redis.call('XRANGE', ready, entry, entry)[1]
    if held and held[2][2] == member then
      if window > 0 then redis.call('ZADD', done, now, member) else drop[#drop + 1] = member end
      gone[#gone + 1] = entry
    end
  elseif last ~= token or here ~= entry then reply = 'fenced'
  else
    reply, seen[member] = cancel == '1' and 'cancelled' or 'ok', token
    ended[reply], ended.anew = ended[reply] + 1, ended.anew + (again[index] and 1 or 0)
    local held = hold and reply == 'ok' and not again[index]
    if held or not again[index] and window > 0 then
      tombstones[#tombstones + 1] = member
      tombstones[#tombstones + 1] = ('.%s%s %s %s %s -'):format(cancel == '1' and 'c' or 'd', asked, digest, token, attempts)
      if not held then times[#times + 1], times[#times + 2] = now, member end
    elseif not again[index] then drop[#drop + 1] = member end
    over[#over + 1] = member
    if not held then gone[#gone + 1] = entry end
  end
  replies[index] = reply
end
if #tombstones > 0 then redis.call('HSET', jobs, unpack(tombstones)) end
if #times > 0 then redis.call('ZADD', done, unpack(times)) end
if ended.ok > 0 then redis.call('HINCRBY', meta, 'n.done', ended.ok) end
if ended.anew > 0 then redis.call('HINCRBY', meta, 'n.adopted', ended.anew) end
if ended.cancelled > 0 then redis.call('HINCRBY', meta, 'n.cancelled', ended.cancelled) end
if #drop > 0 then redis.call('HDEL', jobs, unpack(drop)) end
if #over > 0 then redis.call('HDEL', runs, unpack(over)) end
if #gone > 0 then
  -- @delete-entries
  redis.call('XDEL', ready, unpack(gone))
  -- @ack-entries
  redis.call('XACK', ready, 'workers', unpack(gone))
end
return replies
