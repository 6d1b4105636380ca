package jobs

import (
	"fmt"
	"slices"
	"strings"

	"ckscale/internal/cks"
)

// say sets the line that shows what the job does or waits for. It is recorded
// with the step, or when the job is put back. A step begins without one.
func (r *run) say(format string, args ...any) {
	r.job.Message = strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
}

// sayReady tells how many of the new nodes are Ready, and which are not.
func (r *run) sayReady(vms []cks.VM, nodes []cks.Node) {
	all, missing := names(vms), notReady(vms, nodes)
	r.say("%d of %d new nodes are Ready; waiting for %s", len(all)-len(missing), len(all), strings.Join(missing, ", "))
}

// sayRemoving tells which of vms, those that the job has chosen, goes now, and
// how many have gone.
func (r *run) sayRemoving(vms []cks.VM, v cks.VM) {
	all := len(r.job.Args.VMIDs)
	if all == 0 {
		all = r.job.Notes.Before - r.job.Args.Size
	}
	r.say("%d of %d nodes are removed; removing %s", max(all-len(leaving(vms)), 0), all, v.Name)
}

// sayUpgrading tells which of the cluster's nodes is upgraded now, and how many
// have been.
func (r *run) sayUpgrading(vms []cks.VM) {
	all := len(cks.UpgradeOrder(vms, "")) // whatever version they have
	todo := cks.UpgradeOrder(vms, r.job.Args.Version)
	if now := slices.IndexFunc(todo, func(v cks.VM) bool { return v.ID == r.job.Notes.VMID }); now >= 0 {
		r.say("%d of %d nodes are upgraded; upgrading %s", all-len(todo), all, todo[now].NodeName())
	}
}
