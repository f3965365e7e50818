#!lua flags=no-writes
-- check-entries: looks whether every entry of ready is yet to be delivered or held by a consumer, a
-- page at a time.
-- USES  group, pending
-- KEYS  1 ready
-- ARGV  1 part  2 after  3 limit
--       part ready | front (ready up to what was delivered last) | pending; after: the entry before
--       the page, '' = none; limit: entries per page
-- RETURN {next, '' = the end; looked; last delivered, '' = no group, '-' = no stream; then per
--        finding: kind, entry, member}
-- Kinds: stuck, delivered and held by nobody: it would never be delivered again; early, promoted
-- before it was due, as far as the clock of entry ids can tell (20 ms: Redis may use the time at
-- which the pass began); vanished, held and not in ready. A page ends at 1 MiB: entries of ours are
-- small, those of others need not be. A delivered entry is compared with one page of what is held;
-- the few that are not in it are asked for.
local ready = KEYS[1]
local part, after, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
if redis.call('EXISTS', ready) == 0 then return { '', 0, '-' } end
local group = groupOf(ready)
local delivered = group and group.delivered or ''
local found, held, bytes = { '', 0, delivered }, {}, 0
local from = after == '' and '-' or '(' .. after
local pending = group and redis.call('XPENDING', ready, 'workers', from, '+', limit) or {}

local function add(kind, entry, member)
  found[#found + 1], found[#found + 2], found[#found + 3] = kind, entry, member
end

local function isDelivered(entry)
  local pattern = '^(%d+)-(%d+) (%d+)-(%d+)$'
  local ms, sequence, lastMs, last = (entry .. ' ' .. delivered):match(pattern)
  if ms ~= lastMs then return ms and tonumber(ms) < tonumber(lastMs) end
  return ms and tonumber(sequence) <= tonumber(last)
end

local function sizeOf(fields)
  local size = 0
  for _, word in ipairs(fields) do
    size = size + #word
  end
  return size
end

local function lookAtPending()
  for at, one in ipairs(pending) do
    local entry = redis.call('XRANGE', ready, one[1], one[1])[1]
    if not entry then
      add('vanished', one[1], '')
    end
    bytes = bytes + sizeOf(entry and entry[2] or {})
    found[1], found[2] = (at == limit or bytes >= 1048576) and one[1] or '', at
    if bytes >= 1048576 then return found end
  end
  return found
end

local function readPage()
  local page, largest, more = {}, 1048576, true
  while more and #page < limit and bytes < 1048576 do
    local room = math.max(1, math.floor((1048576 - bytes) / largest))
    local step = math.min(limit - #page, 100, room)
    local some = redis.call('XRANGE', ready, from, '+', 'COUNT', step)
    more = #some == step
    for _, one in ipairs(some) do
      local size = sizeOf(one[2])
      largest = math.max(bytes == 0 and 1 or largest, size)
      page[#page + 1], bytes, from = one, bytes + size, '(' .. one[1]
    end
  end
  return page, more
end

if part == 'pending' then return lookAtPending() end
for _, one in ipairs(pending) do
  held[one[1]] = true
end
local page, more = readPage()
found[1], found[2] = more and page[#page][1] or '', #page
for _, one in ipairs(page) do
  local entry, due, member = one[1], tonumber(one[2][4]) or 0, one[2][2] or ''
  local isOut = held[entry] or isDelivered(entry)
  if part == 'front' and not isOut then
    found[1] = ''
    return found
  end
  -- A job may be offered for 100 ms before it is due, and its entry stays while it runs.
  if due > tonumber(entry:match('^%d+')) + 120 then
    add('early', entry, member)
  end
  if isOut and not held[entry] and not isPending(ready, entry) then
    add('stuck', entry, member)
  end
end
return found
