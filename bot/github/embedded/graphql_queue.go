package embedded

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// gqlSchema is the part of GitHub's schema that lists the entries of a merge queue.
var gqlSchema = map[string]map[string]gqlField{
	"Query": {
		"repository": {of: "Repository", args: map[string]string{"owner": "String!", "name": "String!"}, resolve: gqlRepository},
	},
	"Repository": {
		"nameWithOwner": {resolve: func(_ *request, on any, _ map[string]any) (any, error) { return on.(*Repo).fullName(), nil }},
		"mergeQueue":    {of: "MergeQueue", args: map[string]string{"branch": "String"}, resolve: gqlQueue},
	},
	"MergeQueue": {
		"entries": {of: "MergeQueueEntryConnection", args: map[string]string{"first": "Int", "after": "String"}, resolve: gqlEntries},
	},
	"MergeQueueEntryConnection": {
		"totalCount": member("totalCount", ""),
		"nodes":      member("nodes", "MergeQueueEntry"),
		"pageInfo":   member("pageInfo", "PageInfo"),
	},
	"PageInfo": {
		"hasNextPage": member("hasNextPage", ""),
		"endCursor":   member("endCursor", ""),
	},
	"MergeQueueEntry": {
		"position":    member("position", ""),
		"state":       member("state", ""),
		"baseCommit":  member("baseCommit", "Commit"),
		"headCommit":  member("headCommit", "Commit"),
		"pullRequest": member("pullRequest", "PullRequest"),
	},
	"Commit":      {"oid": member("oid", "")},
	"PullRequest": {"number": member("number", ""), "headRefOid": member("headRefOid", "")},
}

// member is a field of an object that is a map already.
func member(name, of string) gqlField {
	return gqlField{of: of, resolve: func(_ *request, on any, _ map[string]any) (any, error) { return on.(map[string]any)[name], nil }}
}

// gqlRepository finds a repository by its name or a former name: GraphQL follows renames.
func gqlRepository(rq *request, _ any, args map[string]any) (any, error) {
	owner, name := args["owner"].(string), args["name"].(string)
	r := cmp.Or(rq.s.repo(owner, name), rq.s.movedFrom(owner, name))
	if r == nil || !rq.actor.sees(r) {
		return nil, &gqlError{Type: "NOT_FOUND", Message: fmt.Sprintf("Could not resolve to a Repository with the name '%s/%s'.", owner, name)}
	}
	if r.owner.closed {
		return nil, r.owner.closedTo()
	}
	return r, r.usable()
}

func gqlQueue(rq *request, on any, args map[string]any) (any, error) {
	r := on.(*Repo)
	if err := reads(Read, "merge_queues").check(rq.actor, r); err != nil {
		return nil, err
	}
	branch, named := args["branch"].(string)
	if !named {
		branch = r.branch
	}
	if p := r.protection[branch]; p == nil || !p.Queue {
		return nil, nil
	}
	return r.queue(branch), nil
}

const gqlCursor = "cursor:v2:"

func gqlEntries(_ *request, on any, args map[string]any) (any, error) {
	groups := on.([]*mergeGroup)
	first, ok := args["first"].(int)
	switch {
	case !ok:
		return nil, &gqlError{Type: "MISSING_PAGINATION_BOUNDARIES", Message: "You must provide a `first` or `last` value to properly paginate the `entries` connection."}
	case first < 0 || first > 100:
		return nil, &gqlError{Type: "EXCESSIVE_PAGINATION", Message: fmt.Sprintf("Requesting %d records on the `entries` connection exceeds the `first` limit of 100 records.", first)}
	}
	from := 0
	if after, ok := args["after"].(string); ok {
		raw, _ := base64.StdEncoding.DecodeString(after) // what is no cursor fails below
		n, err := strconv.Atoi(strings.TrimPrefix(string(raw), gqlCursor))
		if err != nil || n < 0 {
			return nil, &gqlError{Type: "INVALID_CURSOR_ARGUMENTS", Message: fmt.Sprintf("`%s` does not appear to be a valid cursor.", after)}
		}
		from = min(n, len(groups))
	}
	to := min(from+first, len(groups))
	nodes := make([]any, 0, to-from)
	for i, g := range groups[from:to] {
		nodes = append(nodes, g.entry(from+i+1))
	}
	var end any
	if len(nodes) > 0 {
		end = base64.StdEncoding.EncodeToString([]byte(gqlCursor + strconv.Itoa(to)))
	}
	return map[string]any{"totalCount": len(groups), "nodes": nodes, "pageInfo": map[string]any{"hasNextPage": to < len(groups), "endCursor": end}}, nil
}

// entry returns the group as an entry of the queue.
func (g *mergeGroup) entry(position int) map[string]any {
	state := "AWAITING_CHECKS"
	switch missing := g.pr.repo.unmet(g.baseRef, g.head); {
	case slices.ContainsFunc(missing, func(m unmet) bool { return m.state == "failing" }):
		state = "UNMERGEABLE"
	case len(missing) == 0:
		state = "MERGEABLE"
	}
	commit := func(sha string) any { return map[string]any{"oid": sha} }
	return map[string]any{"position": position, "state": state, "baseCommit": commit(g.base), "headCommit": commit(g.head),
		"pullRequest": map[string]any{"number": g.pr.number, "headRefOid": g.pr.headSHA}}
}
