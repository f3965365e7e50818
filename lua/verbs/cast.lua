#!lua flags=allow-oom
-- cast: due jobs of a broadcast queue become entries of cast, for every process that subscribes,
-- and are over with that. What another leader made ready and nobody has read comes along.
-- USES  clock, run, telling, tombstone, stale, tags, weight, digits, group, lateness, dead-letter,
--       named, past, sets, nudge, callback, end-tags, nonsense, adopt, odd-member, advertise,
--       charge, take-back, closed-tags, cast-one, cast-entries, casting, cast-bounds
-- KEYS  1 leader  2 scheduled  3 ready  4 jobs  5 runs  6 dead  7 done  8 meta  9 stale
--       10 tags  11 cast  12 work  13 closed  14 past  15 ended
-- ARGV  1 now  2 term  3 lease  4 limit  5 window  6 entries  7 bytes  8 age
--       now ms, '' = server time; term: the leader's value; lease ms, '' = it was renewed lately;
--       limit: members per pass, 0 = none, only the bounds are kept; window ms of tombstones, 0 =
--       keep none; entries, bytes and age ms: the bounds of the stream
-- RETURN as promote; backlog: 0, as nobody can say who has read what; with a limit of 0, 1 = more
--        is to go than a call may drop. {'fenced'} when the term is not the leader's.
-- An entry is {count, before, member, due, record}: count grows by one with each entry, for ever,
-- so a reader knows how many it missed; before: the bytes of all entries before it. Both totals are
-- in meta, and are written first: a call that was cut off leaves a count without an entry, and its
-- job is cast by the next. What is too late is dropped or becomes a dead letter, as its record
-- says. Nobody starts these jobs: no attempt is counted, and the token of their end is their count.
local leader, scheduled, ready, jobs = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local runs, dead, done, meta = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local stale, tags, cast, work = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local closed, past, ended = KEYS[13], KEYS[14], KEYS[15]
local keys = { scheduled = scheduled, ready = ready, jobs = jobs, runs = runs, dead = dead,
  done = done, meta = meta, stale = stale, tags = tags, cast = cast, past = past, ended = ended,
  closed = closed }
local now, term, lease = clock(ARGV[1]), ARGV[2], ARGV[3]
local limit, window = tonumber(ARGV[4]), tonumber(ARGV[5])
local entries, bytes, age = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
if redis.call('GET', leader) ~= term then return { 'fenced' } end
if lease ~= '' then
  redis.call('PEXPIRE', leader, lease)
end

local state = redis.call('HMGET', meta, 'paused', 'wake', 'n.promoted', 'cast', 'closed')
keys.closed = state[5] and closed
local count, total = (state[4] or ''):match('^(%d+) (%d+)$')
local call = { now = now, window = window, moved = 0, letters = 0 }
call.count, call.total, call.lateness = tonumber(count or 0), tonumber(total or 0), {}
local isPaused = state[1]
if limit > 0 and not isPaused then
  takeBack(keys, now, limit)
  castDue(keys, call, limit)
end
local isMore = keepBounds(cast, now, call, { entries = entries, bytes = bytes, age = age })
if limit == 0 then return { 'moved', now, '', isMore and 1 or 0, 0, 0, 0, -1 } end
if call.moved > 0 then
  redis.pcall('SPUBLISH', work, call.moved)
end

local head = redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
head = head and tonumber(head)
head = head and ('%.0f'):format(math.ceil(math.max(0, math.min(head, 9007199254740991)))) or ''
local look = isPaused and '0' or head ~= '' and head or '9007199254740991'
advertise(meta, look, state[2], call.moved, state[3])
local kind = isPaused and 'paused' or 'moved'
return { kind, now, head, 0, call.letters, call.moved, 0, -1, unpack(call.lateness) }
