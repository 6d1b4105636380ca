package cks

import (
	"slices"
	"testing"
)

// Whatever states the workers are in, and in whatever order their rows come,
// the same ones go first: every down one before any other, and the newest
// before the older; none is lost or made up, and the caller's rows stay.
//
// Each byte of states is a worker, in the order of creation; turn is by how
// much the rows are turned round.
func FuzzRemovalOrder(f *testing.F) {
	f.Add([]byte{}, 0)
	f.Add([]byte{1, 1, 3}, 1)
	f.Add([]byte{3, 1, 1, 8, 6, 4}, 4)
	f.Fuzz(func(t *testing.T, states []byte, turn int) {
		var workers []VM
		for i, b := range states {
			workers = append(workers, VM{ID: string(rune('a' + i)), Seq: int64(i), State: VMStates[int(b)%len(VMStates)]})
		}
		rows := slices.Clone(workers)
		if n := len(rows); n > 0 {
			k := (turn%n + n) % n
			rows = slices.Concat(rows[k:], rows[:k])
		}
		before := slices.Clone(rows)
		got := RemovalOrder(rows)
		if !slices.Equal(before, rows) {
			t.Error("the caller's rows changed")
		}
		if !slices.Equal(got, RemovalOrder(workers)) {
			t.Error("the order of the rows counts")
		}
		for i := 1; i < len(got); i++ {
			a, b := got[i-1], got[i]
			if down := a.State.Down(); down != b.State.Down() && !down || down == b.State.Down() && a.Seq <= b.Seq {
				t.Errorf("%s %d goes before %s %d", a.State, a.Seq, b.State, b.Seq)
			}
		}
		slices.SortFunc(got, func(a, b VM) int { return int(a.Seq - b.Seq) })
		if !slices.Equal(got, workers) {
			t.Error("workers were lost or made up")
		}
	})
}
