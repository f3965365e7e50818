#!lua flags=allow-oom
-- limit: a partition gets its share of how much its queue may do at once, a slice per call. With
-- the first share the queue is gated, for ever.
-- USES  clock, tombstone, stale, nudge, group, charge, take-back, digits, line, gate, rates,
--       pausing, marking, carrying, own, costs, own-limits, lanes, opening
-- KEYS  1 leader  2 scheduled  3 ready  4 meta  5 wake  6 stale  7 line  8 lanes  9 holds
--       10 groups  11 order  12 jobs  13 done
-- ARGV  1 now  2 term  3 share  4 limit  then per group: group, limits
--       now ms, '' = server time; term: the leader's value, or '' = whoever has set the limits;
--       share: us per job of the rate, burst, concurrency and limit per group, 0 = without, with a
--       space between; where groups have a rate or some have limits of their own, also us per job
--       and burst of each group, the lengths of names and beginnings, and a digest of them; s or sh
--       at the end: strict order, and behind it c: jobs may cost more than one turn, see gateOf;
--       limit: entries or groups per call; group: a name, or the beginning of names and an
--       asterisk; limits: how many, us per job, burst and weight, - = as all groups have it
-- RETURN ok | same (it has it already) | more (call again) | fenced (the term is not the leader's)
-- What nobody has read goes back to scheduled, as the limits of now do not hold for it. When a
-- queue becomes gated, what was read gets its hold. Meanwhile nothing is let through, and gates of
-- meta is - and the entry that was looked at last. When a limit of groups rises, lanes of groups
-- that were full open, and those that wait for a time. Meanwhile gates is the share, > and the
-- group that was looked at last. So whoever calls next goes on where a caller that died has
-- stopped. What runs goes on, also above a lower limit. What was started before counts: of another
-- rate as many turns are used, and the write that begins with the new one says so. With strict
-- order paused of meta has a mark, see the part marking.
local leader, scheduled, ready, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local wake, stale, line = KEYS[5], KEYS[6], KEYS[7]
local lanes, holds, groups, order = KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local keys = { scheduled = scheduled, ready = ready, meta = meta, stale = stale, line = line,
  lanes = lanes, holds = holds, groups = groups, order = order, jobs = KEYS[12], done = KEYS[13] }
local now, micros = clock(ARGV[1])
local term, share, limit = ARGV[2], ARGV[3], tonumber(ARGV[4])
-- @fence
if term ~= '' and redis.call('GET', leader) ~= term then return 'fenced' end
local state, list = redis.call('HMGET', meta, 'gates', 'paused'), {}
local before, paused = state[1], state[2]
-- @same-limits
if before == share and hasMark(paused, share) then return 'same' end
for at = 5, #ARGV do
  list[at - 4] = ARGV[at]
end

local function keep(text, reply)
  local isNew = text:sub(1, #share) == share
  local used = isNew and carriedOver(meta, before, share, now, micros) or {}
  if isNew then
    used[#used + 1], used[#used + 2] = 'gateSet', ('%.0f'):format(micros or now * 1000)
  end
  keepMarked(keys, paused, share, { 'gates', text, unpack(used) })
  if reply == 'ok' then
    nudge(meta, wake, now)
  end
  return reply
end

local function holdRead(after)
  local words, entries = {}, redis.call('XRANGE', ready, '(' .. after, '+', 'COUNT', limit)
  for _, entry in ipairs(entries) do
    local tenant = groupIn(entry[2][2])
    if tenant ~= '' then
      words[#words + 1], words[#words + 2] = 0, tenant .. '\0' .. entry[1]
    end
  end
  if #words > 0 then
    redis.call('ZADD', holds, unpack(words))
  end
  return #entries == limit and entries[limit][1]
end

local function openAfter(tenant)
  local gate, opened, looked = gateOf(share, redis.call('HGET', meta, 'gate'), now), {}, 0
  local from = tenant == '' and '-' or '(' .. tenant:sub(2) .. '\1'
  while looked < limit do
    local place = redis.call('ZRANGE', line, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not place then
      break
    end
    local group = place:sub(1, place:find('\0', 1, true) - 1)
    for _, lane in ipairs(isGroupFull(keys, gate, group) and {} or lanesOf(line, group)) do
      opened[#opened + 1] = lane
    end
    looked, from, tenant = looked + 1, '(' .. group .. '\1', '=' .. group
  end
  reopenLanes(keys, opened)
  return looked == limit and tenant
end

local function takeBackAll()
  local entries, members, charges = takeBack(keys, now, limit)
  dropHolds(keys, nil, entries, members)
  if before then
    local used = redis.call('HGET', meta, 'gate')
    refundAll(keys, gateOf(before, used, now, micros), charges)
  end
  return undeliveredIn(ready, 1) == 0
end

local read = not before and '0-0' or before:match('^%- (.+)$')
if read then
  if not before then
    keep('- 0-0')
  end
  if not takeBackAll() then return 'more' end
  read = holdRead(read)
  keepLimits(groups, list)
  endOrder(keys, before, paused, share)
  return keep(read and '- ' .. read or share, read and 'more' or 'ok')
end
if not takeBackAll() then return 'more' end
local mine = share .. ' > '
local isWalking = before:sub(1, #mine) == mine
if not isWalking then
  keepLimits(groups, list)
  endOrder(keys, before, paused, share)
end
local limits = '^%S+ %d+ %d+ (%d+)(.*)$'
local had, hadMore = before:match(limits)
local gets, getsMore = share:match(limits)
had, gets = tonumber(had), tonumber(gets)
-- A caller with other limits may have left its walk half made, with lanes that it has not opened.
local isWhole = hadMore == getsMore
if isWhole and (had == 0 or gets > 0 and gets <= had) then return keep(share, 'ok') end
local tenant = openAfter(isWalking and before:sub(#mine + 1) or '')
return keep(tenant and mine .. tenant or share, tenant and 'more' or 'ok')
