#!lua flags=allow-oom
-- extend: a running job stays its worker's for another lease, and its history says how far it is.
-- Many jobs per call.
-- USES  run, history
-- KEYS  1 runs  2 ready
-- ARGV  1 consumer  then per job: entry, member, token, progress
--       progress: a line of the history, in place of the one before; '' = nothing new, no write
-- RETURN one text per job: ok | cancel (extended, and somebody asked to cancel it) | fenced | gone
-- XCLAIM JUSTID on the own entry resets its idle time without counting a delivery. An owner that
-- was emptied by a reclaim refuses: the entry is somebody else's now.
local runs, ready = KEYS[1], KEYS[2]
local consumer, replies = ARGV[1], {}

for at = 2, #ARGV, 4 do
  local entry, member, token, said = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local text, reply = redis.call('HGET', runs, member) or '', 'gone'
  -- Flat: a table for each is slower (compare with `npm run bench -- stages --against`).
  local last, here, owner, cancel = text:match(CLAIM)
  if last and (last ~= token or here ~= entry or owner ~= consumer) then
    reply = 'fenced'
  elseif last then
    local claimed = redis.call('XCLAIM', ready, 'workers', consumer, 0, entry, 'JUSTID')
    reply = #claimed == 0 and 'gone' or hasBit(cancel, STOP) and 'cancel' or 'ok'
    if said ~= '' and reply ~= 'gone' then
      redis.call('HSET', runs, member, withoutProgress(text) .. '\n' .. said)
    end
  end
  replies[#replies + 1] = reply
end
return replies
