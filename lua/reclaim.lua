#!lua flags=allow-oom
-- reclaim: entries of a consumer that is believed dead become the caller's. A crash is counted for those it had started.
-- KEYS  1 ready  2 runs  3 meta
-- ARGV  1 now  2 owner  3 consumer  4 idle  then per wish: entry
--       now ms, '' = server time; owner: the dead one; consumer: the caller; idle ms the entry must have
-- RETURN per claimed entry, flat: entry, member, due; after 1 MiB of entries and runs the rest stays where it is
-- Heartbeats only nominated the owner. What decides is min-idle: a living worker extends its entries well within it.
-- Token and entry stay in the run, so a late complete of the old start still wins until the next start.
local ready, runs, meta, owner, consumer = KEYS[1], KEYS[2], KEYS[3], ARGV[2], ARGV[3]
local now = tonumber(ARGV[1])
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
local reply, crashes, bytes = {}, 0, 0

local function countCrash(entry, member)
  local run = redis.call('HGET', runs, member) or ''
  bytes = bytes + #run
  local head, crashed, here, at, rest = run:match('^(%d+ %d+ %d+ %d+) (%d+) (%S+) (%S+) (.*)$')
  if here ~= entry or at ~= owner then return end
  local attempt = head:match('^%d+ %d+ (%d+)')
  rest = rest .. ('\n{"t":%.0f,"a":%s,"k":"crash","m":"worker %s was lost"}'):format(now, attempt, owner)
  while select(2, rest:gsub('\n', '')) > 5 do rest = rest:gsub('\n[^\n]*', '', 1) end
  redis.call('HSET', runs, member, ('%s %d %s - %s'):format(head, crashed + 1, entry, rest))
  crashes = crashes + 1
end

for index = 5, #ARGV do
  local entry = ARGV[index]
  -- @bytes
  if bytes > 1048576 then break end
  if #redis.call('XPENDING', ready, 'workers', 'IDLE', ARGV[4], entry, entry, 1, owner) > 0 then
    local found = redis.call('XRANGE', ready, entry, entry)[1]
    if not found then redis.call('XACK', ready, 'workers', entry)
    else
      local fields = {}
      for at = 1, #found[2], 2 do
        fields[found[2][at]] = found[2][at + 1]
        bytes = bytes + #found[2][at + 1]
      end
      -- @count-crash
      countCrash(entry, fields.member or '')
      -- @claim-entry
      redis.call('XCLAIM', ready, 'workers', consumer, ARGV[4], entry, 'JUSTID')
      reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = entry, fields.member or '', fields.due or '0'
    end
  end
end
if #reply > 0 then redis.call('HINCRBY', meta, 'n.reclaimed', #reply / 3) end
if crashes > 0 then redis.call('HINCRBY', meta, 'n.crashed', crashes) end
return reply
