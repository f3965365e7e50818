-- cast-bounds: the stream of a broadcast queue stays within its bounds.
-- GIVES   keepBounds(cast, now, call, most): drops the oldest entries, until there are at most so
--         many, of so many bytes, none older than age; says whether some are left that should go.
--         call has total and moved
-- RULE    The newest entry stays whatever its size, until it is too old. Each one that goes is
--         read, so a call drops at most 200 more than it has added. Entries are deleted one by one:
--         that needs no right that a pass of promote does not need.
local function keepBounds(cast, now, call, most)
  local length, rest = redis.call('XLEN', cast), 200 + call.moved
  -- @endless-bounds
  while length > 0 do
    local oldest = redis.call('XRANGE', cast, '-', '+', 'COUNT', 1)[1]
    -- @too-old
    local isOld = tonumber(oldest[1]:match('^%d+')) < now - most.age
    -- @too-much
    local isTooMuch = length > most.entries or call.total - tonumber(oldest[2][4]) > most.bytes
    if not (isOld or length > 1 and isTooMuch) then return false end
    -- @enough-dropped
    if rest == 0 then return true end
    redis.call('XDEL', cast, oldest[1])
    length, rest = length - 1, rest - 1
  end
  return false
end
