package jobs

import (
	"context"
	"slices"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// A step is one named action of a plan. Its name is its checkpoint: a job that
// is resumed goes on behind the last step recorded.
//
// do acts on the world and may run again after a crash, so it looks before it
// acts. db writes rows in the transaction that records the step, so it happens
// exactly once.
type step struct {
	name string
	do   func(*run, context.Context) error
	db   func(*run, context.Context, *store.Queries) error
	// back is set on the last step of a loop: while more says so, the job goes
	// on behind the step of this name instead of the next one.
	back string
	more func(*run, context.Context, *store.Queries) (bool, error)
	// harmless: up to here nothing has changed, so a failure gives the cluster
	// back as it was.
	harmless bool
	// optional: when its tries are used up the job goes on without it.
	optional bool
}

// A plan is what a job does, in order, and what follows when it is given up.
type plan struct {
	steps   []step
	undo    []step
	failed  cks.Event // moves the cluster when the job fails; "" = OperationFailed
	result  func(*run, context.Context, *store.Queries) (cks.JobResult, error)
	explain func(*run, context.Context, *store.Queries) (string, error) // text of the failure; nil = as it was given up
}

// The parts that plans are made of.
var (
	grow = []step{
		{name: "plan-capacity", do: (*run).planCapacity, harmless: true},
		{name: "choose-vms", db: (*run).chooseNewWorkers}, // ids and names stored, so a repeat finds its own
		{name: "create-and-start", do: (*run).createAndStart},
		{name: "attach-iso", do: (*run).attachISO},
		{name: "wait-ready-count", do: (*run).waitReadyCount},
		{name: "wait-new-nodes", do: (*run).waitNewNodes}, // a stale Ready can make up the count
		{name: "detach-iso", do: (*run).detachISO, optional: true},
	}
	shrinkUndo = []step{{name: "keep-the-rest", do: (*run).keepTheRest}}
	growUndo   = []step{{name: "keep-ready-drop-others", do: (*run).keepReadyDropOthers}}

	chooseBySize = []step{
		{name: "observe-vms", do: (*run).observeVMs, harmless: true}, // a VM may be down before the scanner has seen it
		{name: "choose-nodes", db: (*run).chooseBySize},
	}
	chooseByID = []step{
		{name: "observe-vms", do: (*run).observeVMs, harmless: true},
		{name: "choose-nodes", db: (*run).chooseByID},
	}

	removeChosen = []step{
		{name: "next-node", do: (*run).nextNode},
		{name: "drain", do: (*run).drain},
		{name: "delete-node", do: (*run).deleteNode},
		{name: "destroy-vm", do: (*run).destroyVM},
		{name: "record-removal", db: (*run).recordRemoval, back: "choose-nodes", more: (*run).moreToRemove},
	}

	changeOffering = []step{
		{name: "check-vms", do: (*run).checkVMs, harmless: true},
		{name: "resize-vms", do: (*run).resizeVMs},
		{name: "record-offerings", db: (*run).recordOfferings},
	}
	upgrade = []step{
		{name: "plan-upgrade", do: (*run).planUpgrade, harmless: true},
		{name: "attach-iso", do: (*run).attachUpgradeISO},
		{name: "next-node", do: (*run).nextUpgrade},
		{name: "drain", do: (*run).drainForUpgrade},
		{name: "upgrade-node", do: (*run).upgradeNode},
		{name: "wait-node", do: (*run).waitUpgraded},
		{name: "uncordon", do: (*run).uncordonUpgraded},
		{name: "record-node", db: (*run).recordUpgrade, back: "attach-iso", more: (*run).moreToUpgrade},
		{name: "detach-iso", do: (*run).detachUpgradeISO, optional: true},
		{name: "record-version", db: (*run).recordVersion},
	}
	upgradeUndo = []step{{name: "let-nodes-go", do: (*run).letNodesGo}}

	autoscale = []step{
		{name: "set-autoscaler", do: (*run).setAutoscaler, harmless: true},
		{name: "record-autoscaling", db: (*run).recordAutoscaling},
	}
)

// plans says what a job of each kind does.
var plans = map[cks.Kind]plan{
	cks.ScaleUp: {steps: grow, undo: growUndo, result: clusterResult, explain: explainGrowth},
	cks.ScaleDown: {
		steps: slices.Concat(chooseBySize, removeChosen), undo: shrinkUndo, result: clusterResult},
	cks.RemoveNodes: {
		steps: slices.Concat(chooseByID, removeChosen), undo: shrinkUndo, result: clusterResult},
	cks.ChangeOffering: {steps: changeOffering, result: clusterResult},
	// Up: the offering first, then the size; down: the size first (cks.md §5.1.6).
	cks.OfferingThenScaleUp: {
		steps: slices.Concat(changeOffering, grow), undo: growUndo, result: clusterResult, explain: explainGrowth},
	cks.ScaleDownThenOffering: {
		steps: slices.Concat(chooseBySize, removeChosen, changeOffering), undo: shrinkUndo, result: clusterResult},
	cks.OfferingThenRemoveNodes: {
		steps: slices.Concat(changeOffering, chooseByID, removeChosen), undo: shrinkUndo, result: clusterResult},
	cks.Autoscale: {steps: autoscale, result: clusterResult},
	cks.AutoscaleThenOffering: {
		steps: slices.Concat(autoscale, changeOffering), result: clusterResult},
	cks.CreateCluster: {
		steps: []step{
			{name: "plan-capacity", do: (*run).planWholeCluster},
			{name: "choose-vms", db: (*run).chooseAllVMs},
			{name: "create-and-start", do: (*run).createAndStart},
			{name: "attach-iso", do: (*run).attachISO},
			{name: "wait-new-nodes", do: (*run).waitNewNodes},
			{name: "detach-iso", do: (*run).detachISO, optional: true},
			{name: "record-nodes", db: (*run).recordAllNodes},
		},
		undo:   []step{{name: "drop-all", do: (*run).dropAll}, {name: "record-none", db: (*run).recordNone}},
		failed: cks.CreateFailed, result: clusterResult},
	cks.DeleteCluster: {
		steps: []step{{name: "destroy-vms", do: (*run).destroyAllVMs}}, result: successResult},
	cks.StartCluster: {
		steps: []step{{name: "start-vms", do: (*run).startAllVMs}, {name: "wait-nodes", do: (*run).waitAllNodes}}, result: clusterResult},
	cks.StopCluster: {
		steps: []step{{name: "stop-vms", do: (*run).stopAllVMs}}, result: successResult},
	cks.UpgradeCluster: {steps: upgrade, undo: upgradeUndo, result: clusterResult},
	cks.StartVM: {
		steps: []step{{name: "start-vm", do: (*run).startVM}, {name: "wait-running", do: (*run).waitVMRunning}}, result: vmResult},
	cks.StopVM: {
		steps: []step{{name: "stop-vm", do: (*run).stopVM}, {name: "wait-down", do: (*run).waitVMDown}}, result: vmResult},
	cks.DeployVM: {
		steps: []step{
			{name: "plan-capacity", do: (*run).planVM},
			{name: "create-vm", do: (*run).createVM},
			{name: "start-vm", do: (*run).startDeployed},
			{name: "wait-running", do: (*run).waitDeployed},
			{name: "record-vm", db: (*run).recordVM},
		},
		undo: []step{{name: "drop-vm", do: (*run).dropVM}}, result: vmResult},
	cks.DestroyVM: {
		steps: []step{{name: "destroy-vm", do: (*run).destroyPlain}, {name: "record-destroyed", db: (*run).recordDestroyed}},
		undo:  []step{{name: "keep-vm", db: (*run).recordVM}}, result: vmResult},
	cks.AddNodes: {
		steps: []step{
			{name: "move-in", do: (*run).moveIn},
			{name: "attach-iso", do: (*run).attachISO},
			{name: "wait-new-nodes", do: (*run).waitNewNodes},
			{name: "detach-iso", do: (*run).detachISO, optional: true},
		},
		undo: []step{{name: "keep-ready-return-others", do: (*run).keepReadyReturnOthers}}, result: clusterResult, explain: explainAdding},
	cks.RemoveExternal: {
		steps: []step{
			{name: "observe-vms", do: (*run).observeExternal, harmless: true},
			{name: "next-node", do: (*run).nextNode},
			{name: "drain", do: (*run).drain},
			{name: "delete-node", do: (*run).deleteNode},
			{name: "move-out", do: (*run).moveOut},
			{name: "record-return", db: (*run).recordReturn, back: "observe-vms", more: (*run).moreToRemove},
		},
		undo: []step{{name: "keep-the-rest", do: (*run).keepExternal}}, result: clusterResult},
}

// after returns the position behind the step called name: 0 for "". A name
// that steps lacks is an error, never a reason to start over.
func after(steps []step, name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	i := slices.IndexFunc(steps, func(s step) bool { return s.name == name })
	if i < 0 {
		return 0, cks.Errorf(cks.Internal, "plan has no step %q", name)
	}
	return i + 1, nil
}

// unchangedAt reports whether a failure in steps[i] leaves everything as it was.
func unchangedAt(steps []step, i int) bool {
	return !slices.ContainsFunc(steps[:i+1], func(s step) bool { return !s.harmless })
}

// Steps returns the names of the steps of a job of this kind, in order: what a
// job's checkpoint can be.
func Steps(kind cks.Kind) []string { return stepNames(plans[kind].steps) }

// UndoSteps returns the names of the steps that follow when such a job is
// given up.
func UndoSteps(kind cks.Kind) []string { return stepNames(plans[kind].undo) }

func stepNames(steps []step) []string {
	var list []string
	for _, s := range steps {
		list = append(list, s.name)
	}
	return list
}
