// Package model is the model-based test of ckscale, and nothing else. Random
// scripts of commands, power changes, faults, scanner passes, crashes and
// restarts are played on the service, its runners and its simulated cloud;
// after every line the invariants hold, every job has done what it promised,
// and at the end every cluster can be scaled again.
//
// A script that fails is made as short as possible and printed in the language
// of its lines (verbs), so that it can be replayed and kept under testdata.
//
// Nothing waits for real time. The simulated cloud runs on a clock that only
// scripts move, jobs that wait are woken by scanner passes or by the passing
// of that clock, and hanging calls are cut short, so that a script does the
// same each time, but for what runs at the same time on purpose.
package model
