// Package actions gates a change inside a job of GitHub Actions, on a runner of
// the repository's own: from the event that started the job to a verdict, with
// the same checks and the same sticky comment as the bot's, and an exit status.
//
// It keeps no journal. Every run measures anew; what it knows of earlier
// attempts at the same machine code is what the checks of the change's commits
// tell of them, and each attempt is judged at half the error rate of the one before
// it, so that neither asking again nor a push that changes no code rolls the dice
// again. Policy and manifests are the base branch's, and code from a
// fork is not run before somebody has approved that very commit.
package actions
