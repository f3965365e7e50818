-- clock: what time it is, from one reading of the server's clock.
-- GIVES   clock(given): now in ms, which is `given` when a test names one; and where that is the
--         server's, the same in microseconds
-- RULE    Nothing else reads TIME, so no script judges by two clocks.
local function clock(given)
  local named = tonumber(given)
  if named then return named end
  local time = redis.call('TIME')
  local micros = time[1] * 1000000 + time[2]
  return math.floor(micros / 1000), micros
end
