-- clock: what time it is, from one reading of the server's clock, and that the call is not late.
-- GIVES   clock(given): now in ms, which is `given` when a test names one; where that is the
--         server's, the same in microseconds; and when the call was sent for the first time, ms,
--         '' = this is the first time, nil = the caller does not say
-- RULE    Nothing else reads TIME, so no script judges by two clocks. What is given may end with
--         < and the ms until which the call may be carried out. A call that comes later, because a
--         network held its bytes, ends here with the error LATE and the time, and has done nothing:
--         meanwhile its caller has sent it again, or has given it up. No end: it is never late.
--         Behind the end may come @ and when the call was sent first.
local function clock(given)
  local now = tonumber(given)
  -- @given
  if now then return now end
  local named, last, first = (given or ''):match('^(%d*)<?(%d*)(.*)$')
  local micros
  now, last = tonumber(named), tonumber(last)
  if not now then
    local time = redis.call('TIME')
    micros = time[1] * 1000000 + time[2]
    now = math.floor(micros / 1000)
  end
  -- @late
  if last and now > last then
    error({ err = ('LATE %.0f'):format(now) })
  end
  -- @first
  return now, micros, first ~= '' and first:sub(2) or nil
end
