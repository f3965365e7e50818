#!lua flags=allow-oom
-- expire: entries whose jobs are past their expiry are over without a start: dropped, or dead letters. Many per call.
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 meta
-- ARGV  1 now  2 consumer  3 window  4 bytes  then per entry: entry, member, due, compensation, compensationRecord
--       now ms, '' = server time; window ms of tombstones, 0 = keep none; bytes of records per call; due ms; compensation: member of
--       a job that is to take half-done effects of earlier starts back, '' = none; compensationRecord: its record
-- RETURN one text per entry: expired | dead | kept (not late, runs all the same, or in scheduled again) | lost (not owned
--        by the caller) | later (not looked at: too many bytes, call again)
-- Judges again: between the start that said late and this call the job may have become another one. No attempt is used.
-- The compensation job is due at once; no nudge is sent, so the leader sees it within its safety tick.
-- A call that was cut off finds its dead letter again, among the newest 8, or 256 KiB of them. A record that does not fit is
-- not read, nor is anything after it; the first is always read. A value of up to 300 bytes may be a tombstone.
local scheduled, jobs, runs, ready, dead, done, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local now, consumer, window, bytes, replies, gone = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), {}, {}
local size, full, recents = 0, false, nil
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end

local function recent()
  local found, from, read = {}, '+', 0
  while #found < 8 and read < 262144 do
    local deadLetter = redis.call('XREVRANGE', dead, from, '-', 'COUNT', 1)[1]
    if not deadLetter then break end
    for _, word in ipairs(deadLetter[2]) do read = read + #word end
    found[#found + 1], from = deadLetter, '(' .. deadLetter[1]
  end
  return found
end

local function deadLetterOf(member, record, run)
  local token, generation, attempts, history = run:match('^(%d+) (%d+) (%d+)[^\n]*(.*)$')
  recents = recents or recent()
  for _, one in ipairs(recents) do
    if one[2][2] == member and one[2][4] == record and one[2][6] == 'expired' then return one[1] end
  end
  return redis.call('XADD', dead, '*', 'member', member, 'record', record, 'reason', 'expired', 'history', history:sub(2),
    'token', token, 'attempts', attempts, 'generation', generation, 'at', ('%.0f'):format(now))
end

local function judge(entry, member, due, compensation, compensationRecord)
  if #redis.call('XPENDING', ready, 'workers', entry, entry, 1, consumer) == 0 then return 'lost' end
  local length = redis.call('HSTRLEN', jobs, member)
  local fits = size == 0 or size + length <= bytes
  local found = (fits or length <= 300) and redis.call('HGET', jobs, member)
  local tombstone = found and found:byte() == 46
  -- @not-read
  full = not fits and not tombstone and length > 0
  if full then return 'later' end
  size = size + (tombstone and 0 or length)
  local record, run = found or '.', redis.call('HGET', runs, member) or '0 0 0 0 0 - - - 0 - -'
  local token, attempts, at, owner, nextDue = run:match('^(%d+) %d+ (%d+) %d+ %d+ (%S+) (%S+) (%S+)')
  local asked, header = record:match('^1(%w+)(;[^|]*)|')
  if not header or owner ~= '-' or header:find(';p=r', 1, true) or redis.call('ZSCORE', scheduled, member) then return 'kept' end
  local expiry, lateMax = tonumber(header:match(';e=(%w+)') or '', 36), at == '-' and tonumber(header:match(';l=(%w+)') or '', 36)
  local since = tonumber(nextDue) or asked ~= '0' and tonumber(asked, 36) or due
  if not (expiry and now > expiry or lateMax and now - since > lateMax) then return 'kept' end
  if compensation ~= '' and redis.call('HSTRLEN', jobs, compensation) == 0 then
    redis.call('ZADD', scheduled, ('%.0f'):format(now), compensation)
    redis.call('HSET', jobs, compensation, compensationRecord)
    redis.call('HINCRBY', meta, 'n.scheduled', 1)
  end
  local isDead = header:find(';p=x', 1, true)
  local deadLetter = isDead and deadLetterOf(member, record, run) or '-'
  if window > 0 then
    local digest = redis.sha1hex(record):sub(1, 16)
    redis.call('HSET', jobs, member, ('.%s%s %s %s %s %s'):format(isDead and 'x' or 'e', asked, digest, token, attempts, deadLetter))
    redis.call('ZADD', done, now, member)
  else redis.call('HDEL', jobs, member) end
  redis.call('HINCRBY', meta, isDead and 'n.dead' or 'n.expired', 1)
  redis.call('HDEL', runs, member)
  gone[#gone + 1] = entry
  return isDead and 'dead' or 'expired'
end

for at = 5, #ARGV, 5 do
  replies[#replies + 1] = full and 'later' or judge(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]) or now, ARGV[at + 3], ARGV[at + 4])
end
if #gone > 0 then redis.call('XDEL', ready, unpack(gone)) redis.call('XACK', ready, 'workers', unpack(gone)) end
return replies
