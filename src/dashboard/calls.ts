/**
 * Each call of the HTTP API, by its name in docs/reference/openapi.json: where it is, what it is given and what it answers.
 * Made by `npm run generate`; edit the verbs in src/http/api/routes.
 */
import type { Schemas } from './api-types.ts';
import type { Call } from './call.ts';

/** List the queues with their counts. */
export const queuesList: Call<{
  readonly given: {};
  readonly answer: Schemas['Queues'];
}> = { method: 'GET', at: 'queues' };

/** Look at a queue. */
export const queuesGet: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly answer: Schemas['QueueStats'];
}> = { method: 'GET', at: 'queues/{queue}' };

/** Pause a queue. */
export const queuesPause: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body?: {
    readonly reason?: string;
  };
  readonly answer: Schemas['QueuePaused'];
}> = { method: 'POST', at: 'queues/{queue}/pause' };

/** Resume a queue. */
export const queuesResume: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly answer: Schemas['QueuePaused'];
}> = { method: 'POST', at: 'queues/{queue}/resume' };

/** Close a queue with limits for some time. */
export const queuesClose: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: {
    readonly for: number | string;
    readonly reason?: string;
  };
  readonly answer: Schemas['QueueClosed'];
}> = { method: 'POST', at: 'queues/{queue}/close' };

/** Open a closed queue. */
export const queuesOpen: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly answer: Schemas['QueueClosed'];
}> = { method: 'POST', at: 'queues/{queue}/open' };

/** Look at the settings of a queue. */
export const queuesSettings: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly answer: Schemas['SettingsView'];
}> = { method: 'GET', at: 'queues/{queue}/settings' };

/** Change settings of a queue. */
export const queuesSet: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['QueueSettingsRequest'];
  readonly answer: Schemas['SettingsChanged'];
}> = { method: 'PATCH', at: 'queues/{queue}/settings' };

/** Take a setting of a queue back. */
export const queuesUnset: Call<{
  readonly given: {
    readonly queue: string;
    readonly setting: string;
    readonly stored?: 'true' | 'false';
  };
  readonly answer: Schemas['SettingsChanged'];
}> = { method: 'DELETE', at: 'queues/{queue}/settings/{setting}' };

/** List the groups of a queue with limits. */
export const groupsList: Call<{
  readonly given: {
    readonly queue: string;
    readonly limit?: number;
    readonly cursor?: string;
    readonly top?: 'true' | 'false';
  };
  readonly answer: Schemas['GroupPage'];
}> = { method: 'GET', at: 'queues/{queue}/groups' };

/** Look at a group of a queue with limits. */
export const groupsGet: Call<{
  readonly given: {
    readonly queue: string;
    readonly group: string;
  };
  readonly answer: Schemas['GroupReport'];
}> = { method: 'GET', at: 'queues/{queue}/groups/{group}' };

/** Give a group limits of its own. */
export const groupsSet: Call<{
  readonly given: {
    readonly queue: string;
    readonly group: string;
  };
  readonly body: Schemas['GroupLimitsRequest'];
  readonly answer: Schemas['GroupChange'];
}> = { method: 'PUT', at: 'queues/{queue}/groups/{group}/limits' };

/** Give a group the limits of all groups again. */
export const groupsUnset: Call<{
  readonly given: {
    readonly queue: string;
    readonly group: string;
  };
  readonly answer: Schemas['GroupChange'];
}> = { method: 'DELETE', at: 'queues/{queue}/groups/{group}/limits' };

/** Close a group for some time. */
export const groupsClose: Call<{
  readonly given: {
    readonly queue: string;
    readonly group: string;
  };
  readonly body: {
    readonly for: number | string;
    readonly reason?: string;
  };
  readonly answer: Schemas['GroupChange'];
}> = { method: 'POST', at: 'queues/{queue}/groups/{group}/close' };

/** Open a closed group. */
export const groupsOpen: Call<{
  readonly given: {
    readonly queue: string;
    readonly group: string;
  };
  readonly answer: Schemas['GroupChange'];
}> = { method: 'POST', at: 'queues/{queue}/groups/{group}/open' };

/** List the limits that queues share. */
export const limitsList: Call<{
  readonly given: {};
  readonly answer: Schemas['LimitList'];
}> = { method: 'GET', at: 'limits' };

/** Define a limit that several queues share, or change it. */
export const limitsSet: Call<{
  readonly given: {
    readonly limit: string;
  };
  readonly body: Schemas['LimitRequest'];
  readonly answer: Schemas['LimitChange'];
}> = { method: 'PUT', at: 'limits/{limit}' };

/** Take away a limit that no queue names. */
export const limitsRm: Call<{
  readonly given: {
    readonly limit: string;
  };
  readonly answer: Schemas['LimitChange'];
}> = { method: 'DELETE', at: 'limits/{limit}' };

/** List the closed tags of a queue. */
export const tagsClosed: Call<{
  readonly given: {
    readonly queue: string;
    readonly search?: string;
    readonly tag?: string;
    readonly limit?: number;
    readonly cursor?: string;
  };
  readonly answer: Schemas['ClosedTagsPage'];
}> = { method: 'GET', at: 'queues/{queue}/closed' };

/** Close a tag: no job with it starts until an end. */
export const tagsClose: Call<{
  readonly given: {
    readonly queue: string;
    readonly tag: string;
  };
  readonly body: {
    readonly for: number | string;
    readonly reason?: string;
  };
  readonly answer: Schemas['TagClosed'];
}> = { method: 'POST', at: 'queues/{queue}/tags/{tag}/close' };

/** Open a closed tag before its end. */
export const tagsOpen: Call<{
  readonly given: {
    readonly queue: string;
    readonly tag: string;
  };
  readonly answer: Schemas['TagOpened'];
}> = { method: 'POST', at: 'queues/{queue}/tags/{tag}/open' };

/** List the sets of a queue whose callbacks were not made yet. */
export const setsList: Call<{
  readonly given: {
    readonly queue: string;
    readonly limit?: number;
    readonly cursor?: string;
  };
  readonly answer: Schemas['SetsPage'];
}> = { method: 'GET', at: 'queues/{queue}/sets' };

/** Look at a set. */
export const setsGet: Call<{
  readonly given: {
    readonly queue: string;
    readonly set: string;
    readonly group?: string;
  };
  readonly answer: Schemas['Set'];
}> = { method: 'GET', at: 'queues/{queue}/sets/{set}' };

/** Begin a set. */
export const setsCreate: Call<{
  readonly given: {
    readonly queue: string;
    readonly set: string;
  };
  readonly body: Schemas['NewSet'];
  readonly answer: Schemas['SetMade'];
}> = { method: 'PUT', at: 'queues/{queue}/sets/{set}' };

/** Remove a set, and cancel its members. */
export const setsRemove: Call<{
  readonly given: {
    readonly queue: string;
    readonly set: string;
    readonly group?: string;
  };
  readonly answer: Schemas['SetRemoved'];
}> = { method: 'DELETE', at: 'queues/{queue}/sets/{set}' };

/** Seal a set: its callback is made when the last member is over. */
export const setsSeal: Call<{
  readonly given: {
    readonly queue: string;
    readonly set: string;
    readonly group?: string;
  };
  readonly answer: Schemas['SetSealed'];
}> = { method: 'POST', at: 'queues/{queue}/sets/{set}/seal' };

/** What happened in a queue by the minute, hour or day. */
export const queuesMinutes: Call<{
  readonly given: {
    readonly queue: string;
    readonly hours?: '1' | '24';
    readonly days?: number;
    readonly by?: 'hour' | 'day';
  };
  readonly answer: Schemas['QueueMinutes'];
}> = { method: 'GET', at: 'queues/{queue}/minutes' };

/** How late jobs were in the last hour, all queues together and each. */
export const lateness: Call<{
  readonly given: {};
  readonly answer: Schemas['LastHour'];
}> = { method: 'GET', at: 'lateness' };

/** What happened in the last day, in each queue and by the hour. */
export const day: Call<{
  readonly given: {};
  readonly answer: Schemas['Day'];
}> = { method: 'GET', at: 'day' };

/** Why jobs of a queue wait, if any do. */
export const queuesWhy: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly answer: Schemas['WhyNothingMoves'];
}> = { method: 'GET', at: 'queues/{queue}/why' };

/** Why a queue was late within some time. */
export const queuesLate: Call<{
  readonly given: {
    readonly queue: string;
    readonly from?: string;
    readonly to?: string;
  };
  readonly answer: Schemas['QueueLate'];
}> = { method: 'GET', at: 'queues/{queue}/late' };

/** Whether a queue keeps what it promises about lateness. */
export const queuesSlo: Call<{
  readonly given: {
    readonly queue: string;
    readonly month?: string;
  };
  readonly answer: Schemas['Slo'];
}> = { method: 'GET', at: 'queues/{queue}/slo' };

/** Whether queues keep what they promise about lateness. */
export const slo: Call<{
  readonly given: {
    readonly month?: string;
  };
  readonly answer: Schemas['Slos'];
}> = { method: 'GET', at: 'slo' };

/** Show what a queue would do. */
export const queuesSimulate: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body?: Schemas['SimulateRequest'];
  readonly answer: Schemas['Simulation'];
}> = { method: 'POST', at: 'queues/{queue}/simulate' };

/** Try the target of a queue. */
export const targetsTry: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body?: Schemas['TargetTry'];
  readonly answer: Schemas['TargetTried'];
}> = { method: 'POST', at: 'queues/{queue}/target/try' };

/** Find jobs in all queues, by due time. */
export const jobsFind: Call<{
  readonly given: {
    readonly queue?: string;
    readonly id?: string;
    readonly state?: string;
    readonly tag?: string;
    readonly set?: string;
    readonly name?: string;
    readonly idPrefix?: string;
    readonly dueFrom?: string;
    readonly dueTo?: string;
    readonly failed?: 'true' | 'false';
    readonly endedFrom?: string;
    readonly endedTo?: string;
    readonly ranFrom?: string;
    readonly ranTo?: string;
    readonly sort?: 'due';
    readonly preview?: 'data';
    readonly limit?: number;
    readonly cursor?: string;
  };
  readonly answer: Schemas['FoundJobs'];
}> = { method: 'GET', at: 'jobs' };

/** List jobs by state, tag, set, name, id, failures and due time. */
export const jobsList: Call<{
  readonly given: {
    readonly queue: string;
    readonly state?: string;
    readonly tag?: string;
    readonly set?: string;
    readonly name?: string;
    readonly idPrefix?: string;
    readonly dueFrom?: string;
    readonly dueTo?: string;
    readonly failed?: 'true' | 'false';
    readonly endedFrom?: string;
    readonly endedTo?: string;
    readonly sort?: 'due';
    readonly preview?: 'data';
    readonly limit?: number;
    readonly cursor?: string;
  };
  readonly answer: Schemas['JobsPage'];
}> = { method: 'GET', at: 'queues/{queue}/jobs' };

/** Schedule a job. */
export const jobsSchedule: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['NewJob'];
  readonly answer: Schemas['Scheduled'];
}> = { method: 'POST', at: 'queues/{queue}/jobs' };

/** Count the jobs that are not over, all or by a filter. */
export const jobsCount: Call<{
  readonly given: {
    readonly queue: string;
    readonly state?: string;
    readonly tag?: string;
    readonly set?: string;
    readonly name?: string;
    readonly idPrefix?: string;
    readonly dueFrom?: string;
    readonly dueTo?: string;
    readonly failed?: 'true' | 'false';
    readonly cursor?: string;
  };
  readonly answer: Schemas['JobCount'];
}> = { method: 'GET', at: 'queues/{queue}/count' };

/** Hear of the ends of jobs. */
export const jobsEnds: Call<{
  readonly given: {
    readonly queue: string;
    readonly state?: string;
    readonly tag?: string;
    readonly set?: string;
    readonly name?: string;
    readonly idPrefix?: string;
    readonly dueFrom?: string;
    readonly dueTo?: string;
    readonly failed?: 'true' | 'false';
    readonly wait?: string;
  };
  readonly answer: Schemas['JobEnd'];
}> = { method: 'GET', at: 'queues/{queue}/ends' };

/** See what would become of a job. */
export const jobsPreview: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['NewJob'];
  readonly answer: Schemas['JobPreview'];
}> = { method: 'POST', at: 'queues/{queue}/preview' };

/** Look at a job. */
export const jobsGet: Call<{
  readonly given: {
    readonly queue: string;
    readonly id: string;
    readonly bare?: 'true' | 'false';
    readonly wait?: string;
  };
  readonly answer: Schemas['Job'];
}> = { method: 'GET', at: 'queues/{queue}/jobs/{id}' };

/** Change the content of a job that waits, and with it its due time. */
export const jobsEdit: Call<{
  readonly given: {
    readonly queue: string;
    readonly id: string;
  };
  readonly body: Schemas['JobChange'];
  readonly answer: Schemas['Edited'];
}> = { method: 'PATCH', at: 'queues/{queue}/jobs/{id}' };

/** Cancel a job. */
export const jobsCancel: Call<{
  readonly given: {
    readonly queue: string;
    readonly id: string;
    readonly bare?: 'true' | 'false';
  };
  readonly answer: Schemas['Cancelled'];
}> = { method: 'DELETE', at: 'queues/{queue}/jobs/{id}' };

/** Give a job that waits another due time. */
export const jobsReschedule: Call<{
  readonly given: {
    readonly queue: string;
    readonly id: string;
  };
  readonly body: Schemas['NewDue'];
  readonly answer: Schemas['Rescheduled'];
}> = { method: 'POST', at: 'queues/{queue}/jobs/{id}/reschedule' };

/** Run a job that waits now. */
export const jobsRun: Call<{
  readonly given: {
    readonly queue: string;
    readonly id: string;
  };
  readonly answer: Schemas['RanNow'];
}> = { method: 'POST', at: 'queues/{queue}/jobs/{id}/run' };

/** Schedule many jobs. */
export const jobsScheduleMany: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['NewJobs'];
  readonly answer: Schemas['ScheduledMany'];
}> = { method: 'POST', at: 'queues/{queue}/batch/schedule' };

/** Cancel many jobs: a list, or all that a filter means. */
export const jobsCancelMany: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['BatchRequest'];
  readonly answer: Schemas['CancelledMany'];
}> = { method: 'POST', at: 'queues/{queue}/batch/cancel' };

/** Run many jobs now: a list, or the scheduled ones that a filter means. */
export const jobsRunMany: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['BatchRequest'];
  readonly answer: Schemas['RanNowMany'];
}> = { method: 'POST', at: 'queues/{queue}/batch/run' };

/** Give many jobs another due time: a list, or all that a filter means. */
export const jobsRescheduleMany: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['RescheduleBatchRequest'];
  readonly answer: Schemas['RescheduledMany'];
}> = { method: 'POST', at: 'queues/{queue}/batch/reschedule' };

/** Change the content of many jobs: a list, or all that a filter means. */
export const jobsEditMany: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['EditBatchRequest'];
  readonly answer: Schemas['EditedMany'];
}> = { method: 'POST', at: 'queues/{queue}/batch/edit' };

/** What jobs of all queues died of. */
export const deadOverview: Call<{
  readonly given: {
    readonly queue?: string;
    readonly reason?: string;
    readonly name?: string;
    readonly tag?: string;
    readonly set?: string;
    readonly id?: string;
    readonly error?: string;
    readonly olderThan?: string;
    readonly newerThan?: string;
  };
  readonly answer: Schemas['DeadLetterOverview'];
}> = { method: 'GET', at: 'dead' };

/** List dead letters, newest first, or count those that died alike. */
export const deadList: Call<{
  readonly given: {
    readonly queue: string;
    readonly group?: 'error';
    readonly reason?: string;
    readonly name?: string;
    readonly tag?: string;
    readonly set?: string;
    readonly id?: string;
    readonly error?: string;
    readonly olderThan?: string;
    readonly newerThan?: string;
    readonly limit?: number;
    readonly cursor?: string;
  };
  readonly answer: Schemas['DeadLettersPage'];
}> = { method: 'GET', at: 'queues/{queue}/dead' };

/** Look at a dead letter. */
export const deadGet: Call<{
  readonly given: {
    readonly queue: string;
    readonly deadLetter: string;
  };
  readonly answer: Schemas['DeadLetter'];
}> = { method: 'GET', at: 'queues/{queue}/dead/{deadLetter}' };

/** Replay a dead letter. */
export const deadReplay: Call<{
  readonly given: {
    readonly queue: string;
    readonly deadLetter: string;
  };
  readonly body?: Schemas['ReplayDue'];
  readonly answer: Schemas['Replayed'];
}> = { method: 'POST', at: 'queues/{queue}/dead/{deadLetter}/replay' };

/** Replay many dead letters, at once or spread over a time. */
export const deadReplayMany: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['ReplayRequest'];
  readonly answer: Schemas['ReplayedMany'];
}> = { method: 'POST', at: 'queues/{queue}/dead/replay' };

/** Remove dead letters for ever. */
export const deadPurge: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['PurgeRequest'];
  readonly answer: Schemas['Purged'];
}> = { method: 'POST', at: 'queues/{queue}/dead/purge' };

/** Remove what is stored of a person. */
export const erase: Call<{
  readonly given: {};
  readonly body: Schemas['EraseRequest'];
  readonly answer: Schemas['Erased'];
}> = { method: 'POST', at: 'erase' };

/** List schedules by name. */
export const schedulesList: Call<{
  readonly given: {
    readonly queue?: string;
    readonly tag?: string;
    readonly limit?: number;
  };
  readonly answer: Schemas['SchedulesPage'];
}> = { method: 'GET', at: 'schedules' };

/** Look at a schedule. */
export const schedulesGet: Call<{
  readonly given: {
    readonly name: string;
  };
  readonly answer: Schemas['Schedule'];
}> = { method: 'GET', at: 'schedules/{name}' };

/** Create a schedule or change it. */
export const schedulesPut: Call<{
  readonly given: {
    readonly name: string;
  };
  readonly body: Schemas['ScheduleDefinition'];
  readonly answer: Schemas['ScheduleChanged'];
}> = { method: 'PUT', at: 'schedules/{name}' };

/** Remove a schedule. */
export const schedulesRm: Call<{
  readonly given: {
    readonly name: string;
  };
}> = { method: 'DELETE', at: 'schedules/{name}' };

/** Pause a schedule. */
export const schedulesPause: Call<{
  readonly given: {
    readonly name: string;
  };
  readonly body?: Schemas['SchedulePauseRequest'];
  readonly answer: Schemas['ScheduleChanged'];
}> = { method: 'POST', at: 'schedules/{name}/pause' };

/** Resume a schedule from now on. */
export const schedulesResume: Call<{
  readonly given: {
    readonly name: string;
  };
  readonly answer: Schemas['ScheduleChanged'];
}> = { method: 'POST', at: 'schedules/{name}/resume' };

/** Show the coming instants of a schedule. */
export const schedulesPreview: Call<{
  readonly given: {
    readonly name: string;
    readonly next?: number;
    readonly until?: string;
    readonly from?: string;
  };
  readonly answer: Schemas['Preview'];
}> = { method: 'GET', at: 'schedules/{name}/preview' };

/** Show what a definition would do. */
export const schedulesPreviewNew: Call<{
  readonly given: {};
  readonly body: Schemas['PreviewRequest'];
  readonly answer: Schemas['Preview'];
}> = { method: 'POST', at: 'schedules/preview' };

/** What became of the past instants of a schedule, latest first. */
export const schedulesRuns: Call<{
  readonly given: {
    readonly name: string;
    readonly limit?: number;
    readonly cursor?: string;
  };
  readonly answer: Schemas['PastRuns'];
}> = { method: 'GET', at: 'schedules/{name}/runs' };

/** Run one extra job of a schedule now. */
export const schedulesTrigger: Call<{
  readonly given: {
    readonly name: string;
  };
  readonly body?: Schemas['TriggerRequest'];
  readonly answer: Schemas['FiredJob'];
}> = { method: 'POST', at: 'schedules/{name}/trigger' };

/** Run the jobs of a range of past instants now. */
export const schedulesBackfill: Call<{
  readonly given: {
    readonly name: string;
  };
  readonly body: Schemas['BackfillRequest'];
  readonly answer: Schemas['Backfilled'];
}> = { method: 'POST', at: 'schedules/{name}/backfill' };

/** How many jobs come due when. */
export const forecast: Call<{
  readonly given: {
    readonly until?: string;
    readonly by?: 'minute' | 'half-hour' | 'hour' | 'auto';
    readonly queue?: string;
    readonly perQueue?: 'true' | 'false';
  };
  readonly answer: Schemas['Forecast'];
}> = { method: 'GET', at: 'forecast' };

/** Who leads each partition. */
export const leaders: Call<{
  readonly given: {
    readonly queue?: string;
  };
  readonly answer: Schemas['Leaders'];
}> = { method: 'GET', at: 'leaders' };

/** The workers, and the jobs that they run. */
export const workers: Call<{
  readonly given: {
    readonly queue?: string;
    readonly worker?: string;
    readonly limit?: number;
  };
  readonly answer: Schemas['Workers'];
}> = { method: 'GET', at: 'workers' };

/** Pause a worker. */
export const workersPause: Call<{
  readonly given: {
    readonly worker: string;
  };
  readonly body?: {
    readonly reason?: string;
  };
  readonly answer: Schemas['WorkerPaused'];
}> = { method: 'POST', at: 'workers/{worker}/pause' };

/** Resume a worker. */
export const workersResume: Call<{
  readonly given: {
    readonly worker: string;
  };
  readonly answer: Schemas['WorkerPaused'];
}> = { method: 'POST', at: 'workers/{worker}/resume' };

/** Whether this Redis can be trusted with jobs. */
export const doctor: Call<{
  readonly given: {};
  readonly answer: Schemas['Findings'];
}> = { method: 'GET', at: 'doctor' };

/** Which installation answers, and what the caller may do. */
export const about: Call<{
  readonly given: {};
  readonly answer: Schemas['About'];
}> = { method: 'GET', at: 'about' };

/** Watch all queues, once a second. */
export const live: Call<{
  readonly given: {
    readonly events?: number;
  };
  readonly answer: Schemas['LiveNow'];
}> = { method: 'GET', at: 'live' };

/** Who changed what, newest first. */
export const audit: Call<{
  readonly given: {
    readonly queue?: string;
    readonly target?: string;
    readonly who?: string;
    readonly verb?: string;
    readonly from?: string;
    readonly to?: string;
    readonly limit?: number;
    readonly cursor?: string;
  };
  readonly answer: Schemas['AuditPage'];
}> = { method: 'GET', at: 'audit' };

/** Log in with a token. */
export const sessionOpen: Call<{
  readonly given: {};
  readonly body: Schemas['Login'];
  readonly answer: Schemas['Session'];
}> = { method: 'POST', at: 'session' };

/** Look at who is logged in. */
export const sessionGet: Call<{
  readonly given: {
    readonly optional?: 'true' | 'false';
  };
  readonly answer?: Schemas['Session'];
}> = { method: 'GET', at: 'session' };

/** Log out. */
export const sessionEnd: Call<{
  readonly given: {};
}> = { method: 'DELETE', at: 'session' };

/** Claim jobs, as a worker over HTTP. */
export const workClaim: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['Claim'];
  readonly answer: Schemas['Claimed'];
}> = { method: 'POST', at: 'queues/{queue}/claim' };

/** Say how runs have ended. */
export const workSettle: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['Settle'];
  readonly answer: Schemas['SettleWords'];
}> = { method: 'POST', at: 'queues/{queue}/settle' };

/** Keep runs. */
export const workBeat: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['Beat'];
  readonly answer: Schemas['BeatWords'];
}> = { method: 'POST', at: 'queues/{queue}/beat' };

/** Leave, as a worker over HTTP. */
export const workLeave: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['Leave'];
  readonly answer: Schemas['WorkerLeft'];
}> = { method: 'POST', at: 'queues/{queue}/leave' };

/** Complete one run. */
export const workComplete: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['CompleteRun'];
  readonly answer: Schemas['SettleWord'];
}> = { method: 'POST', at: 'queues/{queue}/complete' };

/** Say that one run has failed. */
export const workFail: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['FailRun'];
  readonly answer: Schemas['SettleWord'];
}> = { method: 'POST', at: 'queues/{queue}/fail' };

/** Put the job of one run off. */
export const workDefer: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['DeferRun'];
  readonly answer: Schemas['SettleWord'];
}> = { method: 'POST', at: 'queues/{queue}/defer' };

/** At most once: ask whether one run may begin. */
export const workBegin: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['BeginRun'];
  readonly answer: Schemas['SettleWord'];
}> = { method: 'POST', at: 'queues/{queue}/begin' };

/** Keep one run. */
export const workExtend: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['ExtendRun'];
  readonly answer: Schemas['BeatWord'];
}> = { method: 'POST', at: 'queues/{queue}/extend' };

/** Say how far one run is. */
export const workProgress: Call<{
  readonly given: {
    readonly queue: string;
  };
  readonly body: Schemas['RunProgress'];
  readonly answer: Schemas['BeatWord'];
}> = { method: 'POST', at: 'queues/{queue}/progress' };
