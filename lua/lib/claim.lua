-- claim: whether who settles a job is who runs it. Fences a job for the scripts that settle one job
-- with an error or a delay; complete, commit and extend compare token and entry themselves.
-- GIVES   refusalOf(run, jobs, entry, member, token): nothing, or the word that refuses it
-- NEEDS   tombstone
-- RULE    Only the newest token and its own entry may settle a job. The same call once more is told
--         `already`, whether the job is over since or waits for its next start, and `cancelled`
--         where it ended so.
local function refusalOf(run, jobs, entry, member, token)
  if not run then
    --@lazy
    local outcome, settled = settledIn(jobs, member)
    if settled ~= token then return 'gone' end
    return outcome == 'c' and 'cancelled' or 'already'
  end
  if run.token == token and run.entry == '-' then return 'already' end
  if run.token ~= token or run.entry ~= entry then return 'fenced' end
end
