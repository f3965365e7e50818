#!lua flags=no-writes
-- muster: looks whether every entry of ready is yet to be delivered or held by a consumer, a page at a time.
-- KEYS  1 ready
-- ARGV  1 part  2 after  3 limit
--       part ready | front (ready up to what was delivered last) | pending; after: the entry before the page, '' = none;
--       limit: entries per page
-- RETURN {next, '' = the end; looked; last delivered, '' = no group, '-' = no stream; then per finding: kind, entry, member}
-- Kinds: stuck, delivered and held by nobody: it would never be delivered again · early, promoted before it was due, as
-- far as the clock of entry ids can tell (20 ms: Redis may use the time at which the pass began) · vanished, held and
-- not in ready. A delivered entry is compared with one page of what is held; the few that are not in it are asked for.
local ready, part, after, limit = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
if redis.call('EXISTS', ready) == 0 then return { '', 0, '-' } end
local found, delivered, held = { '', 0, '' }, '', {}
for _, group in ipairs(redis.call('XINFO', 'GROUPS', ready)) do
  if group[2] == 'workers' then delivered = group[8] end
end
local function add(...) for _, word in ipairs({ ... }) do found[#found + 1] = word end end
local function isDelivered(entry)
  local ms, sequence, lastMs, last = (entry .. ' ' .. delivered):match('^(%d+)-(%d+) (%d+)-(%d+)$')
  return ms and (tonumber(ms) < tonumber(lastMs) or ms == lastMs and tonumber(sequence) <= tonumber(last))
end

local from = after == '' and '-' or '(' .. after
if part == 'pending' then
  local page = delivered ~= '' and redis.call('XPENDING', ready, 'workers', from, '+', limit) or {}
  for _, one in ipairs(page) do
    if #redis.call('XRANGE', ready, one[1], one[1]) == 0 then add('vanished', one[1], '') end
  end
  found[1], found[2], found[3] = #page < limit and '' or page[#page][1], #page, delivered
  return found
end
local page = redis.call('XRANGE', ready, from, '+', 'COUNT', limit)
for _, one in ipairs(delivered ~= '' and redis.call('XPENDING', ready, 'workers', from, '+', limit) or {}) do held[one[1]] = true end
found[1], found[2], found[3] = #page < limit and '' or page[#page][1], #page, delivered
for _, one in ipairs(page) do
  local entry, fields = one[1], one[2]
  if part == 'front' and not isDelivered(entry) then found[1] = '' break end
  if (tonumber(fields[4]) or 0) > tonumber(entry:match('^%d+')) + 20 then add('early', entry, fields[2] or '') end
  if isDelivered(entry) and not held[entry] and #redis.call('XPENDING', ready, 'workers', entry, entry, 1) == 0 then
    add('stuck', entry, fields[2] or '')
  end
end
return found
