package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/policies/ident"
)

// A QueueEntry is one pull request in a merge queue.
type QueueEntry struct {
	Number   int    // of the pull request
	PullHead string // the pull request's head commit
	Base     string // the commit that Head was built on: the branch, or the entry ahead; "" if GitHub does not say
	Head     string // the group's commit; "" while the queue has not made one
}

// ErrNoQueueEntries means that this GitHub does not list the entries of a merge queue, or does not
// list them for this App or token.
var ErrNoQueueEntries = errors.New(`GitHub does not list the entries of the merge queue: grant the permission "Merge queues: read", ` +
	`and use GitHub Enterprise Server 3.8 or newer`)

const queueQuery = `query($owner: String!, $name: String!, $branch: String!, $after: String) {
  repository(owner: $owner, name: $name) {
    mergeQueue(branch: $branch) {
      entries(first: 100, after: $after) {
        totalCount
        nodes { position state baseCommit { oid } headCommit { oid } pullRequest { number headRefOid } }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}`

const (
	maxQueuePages = 10
	maxQueueReads = 3
)

// errQueueChanged means that the pages of a queue do not belong to one state of it.
var errQueueChanged = errors.New("the merge queue changed while it was read; read it again")

// MergeQueue lists the entries of a branch's merge queue, in the order in which they merge. It is
// empty where the branch has no queue. It returns ErrNoQueueEntries where GitHub does not say, as
// an old GitHub Enterprise Server, or an App without the permission.
func (h *GitHub) MergeQueue(ctx context.Context, repo, branch string) ([]QueueEntry, error) {
	var out []QueueEntry
	o := op{name: fmt.Sprintf("list the merge queue of %s", branch), permission: "Merge queues: read"}
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) (err error) {
		for range maxQueueReads {
			out, err = h.readQueue(ctx, gh, map[string]any{"owner": owner, "name": name, "branch": branch})
			if !errors.Is(err, errQueueChanged) {
				return err
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// readQueue reads all pages of a queue. Between two pages an entry may leave the queue, and the
// next page would then miss one: a group would seem to have fewer members than it has.
func (h *GitHub) readQueue(ctx context.Context, gh *github.Client, variables map[string]any) ([]QueueEntry, error) {
	var nodes []queueNode
	total := -1
	for range maxQueuePages {
		raw, err := h.query(ctx, gh, queueQuery, variables)
		if err != nil {
			return nil, noEndpoint(err)
		}
		page, err := parseQueue(raw)
		if err != nil {
			return nil, err
		}
		if total >= 0 && page.TotalCount != total {
			return nil, errQueueChanged
		}
		total, nodes = page.TotalCount, append(nodes, page.Nodes...)
		if !page.PageInfo.HasNextPage {
			if len(nodes) != total {
				return nil, errQueueChanged
			}
			return entries(nodes)
		}
		variables["after"] = page.PageInfo.EndCursor
	}
	return nil, fmt.Errorf("the merge queue has more than %d entries, which is more than the client reads", maxQueuePages*perPage)
}

// noEndpoint turns the refusal of the whole GraphQL API into ErrNoQueueEntries.
func noEndpoint(err error) error {
	refusal, ok := errors.AsType[*github.ErrorResponse](err)
	if _, inner := errors.AsType[*Error](err); !ok || inner || refusal.Response == nil { // inner: no token, for example
		return err
	}
	status := refusal.Response.StatusCode
	if status == http.StatusNotFound || status == http.StatusForbidden && !away(status, refusal.Message) {
		return fmt.Errorf("%w (GitHub answered %d: %s)", ErrNoQueueEntries, status, words(refusal))
	}
	return err
}

// A queuePage is one page of a queue's entries. The zero value is a branch without a queue.
type queuePage struct {
	TotalCount int         `json:"totalCount"`
	Nodes      []queueNode `json:"nodes"`
	PageInfo   struct {
		HasNextPage bool   `json:"hasNextPage"`
		EndCursor   string `json:"endCursor"`
	} `json:"pageInfo"`
}

type queueNode struct {
	Position    int         `json:"position"`
	BaseCommit  queueCommit `json:"baseCommit"`
	HeadCommit  queueCommit `json:"headCommit"`
	PullRequest struct {
		Number     int    `json:"number"`
		HeadRefOID string `json:"headRefOid"`
	} `json:"pullRequest"`
}

type queueCommit struct {
	OID string `json:"oid"`
}

// parseQueue reads an answer to queueQuery.
func parseQueue(raw []byte) (queuePage, error) {
	var got struct {
		Data struct {
			Repository *struct {
				MergeQueue *struct {
					Entries *queuePage `json:"entries"`
				} `json:"mergeQueue"`
			} `json:"repository"`
		} `json:"data"`
		Errors graphQLErrors `json:"errors"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return queuePage{}, fmt.Errorf("read the answer: %w", err)
	}
	// An answer with errors may hold data, but with parts missing.
	if len(got.Errors) > 0 {
		return queuePage{}, queueRefusal(got.Errors)
	}
	at := got.Data.Repository
	switch {
	case at == nil:
		return queuePage{}, errors.New("read the answer: it has no repository")
	case at.MergeQueue == nil:
		return queuePage{}, nil
	case at.MergeQueue.Entries == nil:
		return queuePage{}, errors.New("read the answer: the merge queue has no list of entries")
	}
	page := *at.MergeQueue.Entries
	if page.PageInfo.HasNextPage && (page.PageInfo.EndCursor == "" || len(page.Nodes) == 0) {
		return queuePage{}, errors.New("read the answer: a page of the merge queue does not lead to the next one")
	}
	for _, n := range page.Nodes {
		if err := n.check(); err != nil {
			return queuePage{}, fmt.Errorf("read the answer: entry %d of the merge queue: %w", n.Position, err)
		}
	}
	return page, nil
}

// check refuses an entry that cannot be used. To leave it out would hide a member of a group.
func (n queueNode) check() error {
	switch base, head := n.BaseCommit.OID, n.HeadCommit.OID; {
	case n.PullRequest.Number <= 0:
		return errors.New("it names no pull request")
	case !ident.IsCommit(n.PullRequest.HeadRefOID):
		return fmt.Errorf("the head of #%d is %q, which is not a commit", n.PullRequest.Number, n.PullRequest.HeadRefOID)
	case head != "" && !ident.IsCommit(head), base != "" && !ident.IsCommit(base):
		return fmt.Errorf("the group of #%d has the commits %q and %q", n.PullRequest.Number, base, head)
	}
	return nil
}

// entries sorts the nodes as they merge.
func entries(nodes []queueNode) ([]QueueEntry, error) {
	slices.SortStableFunc(nodes, func(a, b queueNode) int { return cmp.Compare(a.Position, b.Position) })
	var out []QueueEntry
	seen := map[int]bool{}
	for _, n := range nodes {
		e := QueueEntry{Number: n.PullRequest.Number, PullHead: n.PullRequest.HeadRefOID, Base: n.BaseCommit.OID, Head: n.HeadCommit.OID}
		if seen[e.Number] {
			return nil, errQueueChanged
		}
		seen[e.Number] = true
		out = append(out, e)
	}
	return out, nil
}

// queueRefusal returns the client's error for the errors in an answer.
func queueRefusal(all graphQLErrors) error {
	if e := all.find(func(e graphQLError) bool {
		return e.Type == "NOT_FOUND" && len(e.Path) == 1 && e.Path[0] == "repository"
	}); e != nil {
		return &github.ErrorResponse{Response: &http.Response{StatusCode: http.StatusNotFound}, Message: e.Message}
	}
	silent := all.find(func(e graphQLError) bool {
		return e.Type == "FORBIDDEN" || e.Type == "INSUFFICIENT_SCOPES" || e.Extensions.Code == "undefinedField"
	})
	if silent != nil {
		return fmt.Errorf("%w (%s)", ErrNoQueueEntries, silent.Message)
	}
	return all
}
