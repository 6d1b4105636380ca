// Package migrations embeds the SQL schema history. Every statement can be run
// again: a server killed in the middle of a migration leaves nothing that the
// next one trips over.
package migrations

import "embed"

// FS holds the golang-migrate files.
//
//go:embed *.sql
var FS embed.FS
