#!lua flags=no-writes
-- check-entries: looks whether every entry of ready is yet to be delivered or held by a consumer, a page at a time.
-- KEYS  1 ready
-- ARGV  1 part  2 after  3 limit
--       part ready | front (ready up to what was delivered last) | pending; after: the entry before the page, '' = none;
--       limit: entries per page
-- RETURN {next, '' = the end; looked; last delivered, '' = no group, '-' = no stream; then per finding: kind, entry, member}
-- Kinds: stuck, delivered and held by nobody: it would never be delivered again · early, promoted before it was due, as
-- far as the clock of entry ids can tell (20 ms: Redis may use the time at which the pass began) · vanished, held and
-- not in ready. A page ends at 1 MiB: entries of ours are small, those of others need not be. A delivered entry is compared with one page of what is held; the few that are not in it are asked for.
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

local from, bytes = after == '' and '-' or '(' .. after, 0
local function sizeOf(fields)
  local size = 0
  for _, word in ipairs(fields) do size = size + #word end
  return size
end
if part == 'pending' then
  local page = delivered ~= '' and redis.call('XPENDING', ready, 'workers', from, '+', limit) or {}
  for at, one in ipairs(page) do
    local entry = redis.call('XRANGE', ready, one[1], one[1])[1]
    if not entry then add('vanished', one[1], '') end
    bytes = bytes + sizeOf(entry and entry[2] or {})
    found[1], found[2] = (at == limit or bytes >= 1048576) and one[1] or '', at
    if bytes >= 1048576 then break end
  end
  found[3] = delivered
  return found
end
for _, one in ipairs(delivered ~= '' and redis.call('XPENDING', ready, 'workers', from, '+', limit) or {}) do held[one[1]] = true end
local page, largest, more = {}, 1048576, true
while more and #page < limit and bytes < 1048576 do
  local step = math.min(limit - #page, 100, math.max(1, math.floor((1048576 - bytes) / largest)))
  local some = redis.call('XRANGE', ready, from, '+', 'COUNT', step)
  more = #some == step
  for _, one in ipairs(some) do
    local size = sizeOf(one[2])
    page[#page + 1], bytes, largest, from = one, bytes + size, math.max(bytes == 0 and 1 or largest, size), '(' .. one[1]
  end
end
found[1], found[2], found[3] = more and page[#page][1] or '', #page, delivered
for _, one in ipairs(page) do
  local entry, fields = one[1], one[2]
  if part == 'front' and not isDelivered(entry) then found[1] = '' break end
  if (tonumber(fields[4]) or 0) > tonumber(entry:match('^%d+')) + 20 then add('early', entry, fields[2] or '') end
  if isDelivered(entry) and not held[entry] and #redis.call('XPENDING', ready, 'workers', entry, entry, 1) == 0 then
    add('stuck', entry, fields[2] or '')
  end
end
return found
