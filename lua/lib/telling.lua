-- telling: who waits for the end of a job is told of it.
-- GIVES   tellEnd(meta, run, member, outcome, token): says on the channel over that the job has
--         ended, where its run says that somebody waits; token is that of its tombstone, nil = that
--         of the run
-- NEEDS   run
-- RULE    A job that nobody waits for costs no command. Told once its tombstone is written: a call
--         that was cut off before tells nobody, and who waits asks again every 5 s. The channel is
--         named after meta, so that no script has a key more for it.
local function tellEnd(meta, run, member, outcome, token)
  if run and hasBit(run.cancel, WAITED) then
    local over = meta:sub(1, -5) .. 'over'
    redis.pcall('SPUBLISH', over, ('%s %s %s'):format(outcome, token or run.token, member))
  end
end
