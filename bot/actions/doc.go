// Package actions gates a change inside a job of GitHub Actions, on a runner of
// the repository's own: from the event that started the job to a verdict, with
// the same checks and the same sticky comment as the bot's, and an exit status.
//
// It keeps no journal. Every run measures anew; what it knows of earlier
// attempts at a commit is what GitHub shows of them, and each attempt is judged
// at half the error rate of the one before it, so that asking again never rolls
// the dice again. Policy and manifests are the base branch's, and code from a
// fork is not run before somebody has approved that very commit.
package actions
