package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// createProject adds a project, and its owner.
func (p process) createProject(ctx context.Context, cfg config, args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	name, owner := args[0], args[1]
	if !accountName(name) {
		return fmt.Errorf("%q is no project name: 1 to 100 printable characters, none of them a space", name)
	}
	if err := p.withSecrets(ctx, cfg, func(q *store.Queries) error { return q.AddProject(ctx, name, name, owner) }); err != nil {
		return fmt.Errorf("add project %s: %w", name, err)
	}
	_, err := fmt.Fprintf(p.stdout, "project %s belongs to account %s\n", name, owner)
	return err
}

func (p process) addMember(ctx context.Context, cfg config, args []string) error {
	return p.changeMember(ctx, cfg, args, (*store.Queries).AddMember, "account %s is a member of project %s\n")
}

func (p process) removeMember(ctx context.Context, cfg config, args []string) error {
	return p.changeMember(ctx, cfg, args, (*store.Queries).RemoveMember, "account %s is no member of project %s\n")
}

func (p process) changeMember(ctx context.Context, cfg config, args []string,
	change func(q *store.Queries, ctx context.Context, project, account string) error, done string) error {
	if len(args) != 2 {
		return errUsage
	}
	project, account := args[0], args[1]
	if err := withAccounts(ctx, cfg, func(st *store.Store) error { return change(st.Queries, ctx, project, account) }); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, done, account, project)
	return err
}

func (p process) listProjects(ctx context.Context, cfg config, args []string) error {
	if len(args) > 0 {
		return errUsage
	}
	var list []cks.Project
	err := withAccounts(ctx, cfg, func(st *store.Store) (err error) {
		list, _, err = st.Projects(ctx, cks.ProjectFilter{Page: cks.Page{Size: -1}}, "")
		return err
	})
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tID\tOWNERS\tCREATED") // w keeps an error for Flush
	for _, project := range list {
		owners := make([]string, len(project.Owners))
		for i, o := range project.Owners {
			owners[i] = o.Name
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", project.Name, project.ID, strings.Join(owners, ","), project.Created.UTC().Format(time.RFC3339))
	}
	return w.Flush()
}
