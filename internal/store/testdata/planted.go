package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// What TestUnsafeSQLIsFound looks for: every line that ends so is to be found,
// and no other.

const plantedColumns = `id, name`

var (
	plantedTable   = "zones"
	plantedSet     = "zones"
	plantedAddress = "zones"
	PlantedTable   = "zones"
)

func plantedSafe(ctx context.Context, q *Queries, c conn, name string, n int) {
	q.exec(ctx, `SELECT `+plantedColumns+` FROM `+plantedTable+` WHERE name = $1`, name)
	sql := "SELECT 1"
	if n > 0 {
		sql += " LIMIT " + strconv.Itoa(n)
	}
	c.Exec(ctx, sql)
	c.Exec(ctx, fmt.Sprintf("SELECT %d FROM %s", n, plantedTable))
	c.Exec(ctx, "LISTEN "+pgx.Identifier{name}.Sanitize())
	c.Exec(ctx, plantedWhere("name = $1"), name)
	for _, each := range []string{"SELECT 1", "SELECT 2"} {
		c.Query(ctx, each)
	}
	var f filter
	f.text("name = ?", name)
	all(ctx, q, self[string], "SELECT name FROM zones WHERE "+f.sql(), f.args...)
}

func plantedWhere(cond string) string { return "SELECT 1 FROM zones WHERE " + cond }

func plantedUnsafe(ctx context.Context, q *Queries, c conn, tx pgx.Tx, name string) {
	c.Exec(ctx, fmt.Sprintf("SELECT 1 FROM zones WHERE name = '%s'", strings.ToLower(name)))    // unsafe
	c.Exec(ctx, fmt.Sprintf("SELECT %v", any(strings.Title(name))))                             // unsafe
	c.Exec(ctx, plantedWhere("name = '"+strings.ToUpper(name)+"'"))                             // unsafe
	c.Exec(ctx, string([]byte(name)))                                                           // unsafe
	c.Exec(ctx, func() string { return name }())                                                // unsafe
	c.Exec(ctx, PlantedTable)                                                                   // unsafe
	c.Exec(ctx, <-make(chan string))                                                            // unsafe
	plantedSet = strings.ToLower(name)                                                          // unsafe
	c.Exec(ctx, plantedSet)                                                                     //
	fmt.Sscan(name, &plantedAddress)                                                            // unsafe
	c.Exec(ctx, plantedAddress)                                                                 //
	tx.QueryRow(ctx, "SELECT "+strings.Join([]string{plantedTable, strings.Title(name)}, ", ")) // unsafe
	new(pgx.Batch).Queue("SELECT 1 ORDER BY " + strings.TrimPrefix(name, "-"))                  // unsafe
	send := c.Exec                                                                              // unsafe
	send(ctx, name)                                                                             //
	zoneRows.where(ctx, q, "z.name = '"+strings.TrimLeft(name, " ")+"'")                        // unsafe
	var f filter
	f.and("name = '"+strings.TrimRight(name, " ")+"'", 1)                          // unsafe
	f.conds = append(f.conds, strings.ToTitle(name))                               // unsafe
	s := source[string]{from: strings.TrimSuffix(name, "x"), row: "1", alias: "z"} // unsafe
	s.joins = strings.Trim(name, " ")                                              // unsafe
	s.where(ctx, q, "true")
	for _, each := range strings.Split(name, ";") { // unsafe
		c.Query(ctx, each)
	}
	sql, _ := strings.CutPrefix(name, "x") // unsafe
	c.Query(ctx, sql)
	run := func(text string) { c.Query(ctx, text) } // unsafe
	run(name)
	var p plantedInterface = plantedMethods{q}
	p.plantedRun(ctx, strings.TrimFunc(name, nil)) // unsafe
}

type plantedInterface interface {
	plantedRun(ctx context.Context, sql string)
}

type plantedMethods struct{ *Queries }

func (m plantedMethods) plantedRun(ctx context.Context, sql string) { m.exec(ctx, sql) }

// PlantedOpen can be called with anything.
func (q *Queries) PlantedOpen(ctx context.Context, cond string) { // unsafe
	q.exec(ctx, plantedDeeper(cond))
}

func plantedDeeper(cond string) (sql string) {
	sql = plantedWhere(strings.ReplaceAll(cond, "'", "''"))
	return
}

func plantedReturned() (sql string, err error) {
	sql = strings.ToValidUTF8(sql, "") // unsafe
	return
}

func plantedReturns(ctx context.Context, q *Queries) error {
	sql, err := plantedReturned()
	if err == nil {
		_, err = q.exec(ctx, sql)
	}
	return err
}
