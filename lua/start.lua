#!lua flags=allow-oom
-- start: entries a consumer was given become running jobs, each with a token of its own. Lets exactly one of several
-- entries of a member through.
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 meta  8 stale
-- ARGV  1 now  2 consumer  3 bytes  4 window  5 suspects  then per entry: entry, member, due
--       now ms, '' = server time; bytes of records per call; window ms of tombstones, 0 = keep none; entries ascending;
--       suspects: jobs under which so many workers died are not started, 0 = all are
-- RETURN per entry {kind, ...}: run, token, attempts, failures, crashes, generation, history, record |
--        again, the same (a repeated call: nothing is counted twice) | later (not looked at: too many bytes, call again) |
--        suspect, token of its last start (a worker died under it: nothing is written, start it alone) |
--        dropped | cancelled | released (paused) | parked (a record of a later version, back in 4 s) | dead letter |
--        late (past its expiry: call expire) | lost (not owned by the caller)
-- The attempt is counted before anything is parsed, so that a record that kills its reader is still counted. A start
-- that never settled loses its entry when its job goes back to scheduled: its late end is then of no effect. An entry
-- that waited for its start is young again, or it could be taken over at once. Late is
-- judged by the due of the job, not of the entry, which may be an older one; a start that a crash cut off was in time, so only its expiry counts.
-- Every record that is read counts, because its SHA-1 takes Redis 1 ms per 256 KiB: one that does not fit is not read,
-- nor is anything after it. The first is always read. A value of up to 300 bytes may be a tombstone, which counts nothing.
-- An entry without a record is dropped in silence if its member is in stale: it had two entries, and the other one ran.
local scheduled, jobs, runs, ready, dead, done, meta, stale = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local consumer, bytes, window, time = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), redis.call('TIME')
local now = tonumber(ARGV[1]) or time[1] * 1000 + math.floor(time[2] / 1000)
local state = redis.call('HMGET', meta, 'token', 'paused')
local first = math.max((tonumber(state[1]) or 0) + 1, time[1] * 1000000 + time[2])
local count, suspects, size, gone, replies, owned, token, full = (#ARGV - 5) / 3, tonumber(ARGV[5]), 0, {}, {}, {}, first, false
for _, pending in ipairs(redis.call('XPENDING', ready, 'workers', ARGV[6], ARGV[#ARGV - 2], count + 100, consumer)) do owned[pending[1]] = pending[3] end
local function pack(...) return table.concat({ ... }, ' ') end
local function isPending(entry, ...) return #redis.call('XPENDING', ready, 'workers', entry, entry, 1, ...) > 0 end

local function judge(entry, member, due)
  if not (owned[entry] or isPending(entry, consumer)) then return { 'lost' } end
  local length = redis.call('HSTRLEN', jobs, member)
  local fits = size == 0 or size + length <= bytes
  local record, run = (fits or length <= 300) and redis.call('HGET', jobs, member), redis.call('HGET', runs, member)
  local tombstone = record and record:byte() == 46
  -- @not-read
  full = not fits and not tombstone and length > 0
  if full then return { 'later' } end
  size, gone[#gone + 1] = size + (tombstone and 0 or length), entry
  if not record and redis.call('ZSCORE', stale, member) then return { 'dropped' } end
  if not record then
    local found = redis.call('XRANGE', ready, entry, entry)[1]
    redis.call('XADD', dead, '*', 'member', found and found[2][2] or member, 'record', '', 'reason', 'record-missing',
      'history', '', 'token', 0, 'attempts', 0, 'generation', 0, 'at', ('%.0f'):format(now))
    redis.call('HINCRBY', meta, 'n.refused', 1)
    -- @forget-run
    redis.call('HDEL', runs, member)
    return { 'deadLetter' }
  end
  local last, generation, attempts, failures, crashes, at, owner, nextDue, cancel, asked, digest, history =
    (run or '0 0 0 0 0 - - - 0 - -'):match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (%S+) (%d) (%S+) (%S+)(.*)$')
  -- @later-version
  local mine, later = at == entry and owner == consumer, record:find('^[2-9]%w+[;|]')
  if not tombstone and redis.call('ZSCORE', scheduled, member) then
    if at == entry then redis.call('HSET', runs, member, pack(last, generation, attempts, failures, crashes, '- - - 0', asked, digest) .. history) end
    return { 'dropped' }
  end
  if not tombstone and at ~= entry and at ~= '-' and isPending(at) then return { 'dropped' } end
  if asked == '-' and not tombstone then asked, digest = record:match('^%d(%w+)') or '0', redis.sha1hex(record):sub(1, 16) end
  if tombstone or (cancel == '1' and not mine) then
    if not tombstone then redis.call('HSET', jobs, member, ('.c%s %s %s %s -'):format(asked, digest, last, attempts)) end
    if not tombstone then redis.call('HINCRBY', meta, 'n.cancelled', 1) end
    if run then redis.call('HDEL', runs, member) end
    if window > 0 then redis.call('ZADD', done, 'NX', now, member) else redis.call('HDEL', jobs, member) end
    return { tombstone and 'dropped' or 'cancelled' }
  elseif (state[2] or later) and not mine then
    if not state[2] then due = ('%.0f'):format(now + 4000) end redis.call('ZADD', scheduled, due, member)
    if run then redis.call('HSET', runs, member, pack(last, generation, attempts, failures, crashes, '- -', due, 0, asked, digest) .. history) end
    return { state[2] and 'released' or 'parked' }
  end
  gone[#gone] = nil
  local header = not mine and record:match('^1%w+(;[^|]*)|') or ''
  local expiry, lateMax = tonumber(header:match(';e=(%w+)') or '', 36), at == '-' and tonumber(header:match(';l=(%w+)') or '', 36)
  local since = tonumber(nextDue) or asked ~= '0' and tonumber(asked, 36) or due
  if not header:find(';p=r', 1, true) and (expiry and now > expiry or lateMax and now - since > lateMax) then return { 'late' } end
  if suspects > 0 and tonumber(crashes) >= suspects and not mine then return { 'suspect', last } end
  -- @young-again
  if (owned[entry] or math.huge) >= 1000 then redis.call('XCLAIM', ready, 'workers', consumer, 0, entry, 'JUSTID') end
  if mine then return { 'again', last, attempts, failures, crashes, generation, history, record } end
  if token == first then redis.call('HSET', meta, 'token', ('%.0f'):format(token + count)) end
  token, last, attempts = token + 1, ('%.0f'):format(token + 1), attempts + 1
  redis.call('HSET', runs, member, pack(last, generation, attempts, failures, crashes, entry, consumer, '- 0', asked, digest) .. history)
  return { 'run', last, attempts, failures, crashes, generation, history, record }
end

for at = 6, #ARGV, 3 do
  replies[#replies + 1] = full and { 'later' } or judge(ARGV[at], ARGV[at + 1], ('%.0f'):format(tonumber(ARGV[at + 2]) or now))
end
if #gone > 0 then redis.call('XDEL', ready, unpack(gone)) redis.call('XACK', ready, 'workers', unpack(gone)) end
return replies
