package store

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ckscale/internal/cks"
)

// errNone is what one returns when there is no row; exported methods turn it
// into an error with a code.
var errNone = pgx.ErrNoRows

// on lends fn the connection of the transaction that q is in, or one of the
// pool, for one statement.
func (q *Queries) on(ctx context.Context, fn func(context.Context, conn) error) error {
	limited := func(c conn) error {
		ctx, cancel := context.WithTimeout(ctx, q.limit)
		defer cancel()
		return fn(ctx, c)
	}
	if q.store == nil {
		return limited(q.conn)
	}
	c, err := q.store.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	return limited(c)
}

// exec runs a statement and returns how many rows it changed.
func (q *Queries) exec(ctx context.Context, sql string, args ...any) (n int64, err error) {
	err = q.on(ctx, func(ctx context.Context, c conn) error {
		tag, err := c.Exec(ctx, sql, storable(args)...)
		n = tag.RowsAffected()
		return translate(err)
	})
	return n, err
}

// one returns the first row; errNone when there is none.
func one[T any](ctx context.Context, q *Queries, fields func(*T) []any, sql string, args ...any) (T, error) {
	rows, err := all(ctx, q, fields, sql, args...)
	if err == nil && len(rows) == 0 {
		err = errNone
	}
	if err != nil {
		var none T
		return none, err
	}
	return rows[0], nil
}

// all returns every row. fields says where the columns of one go.
func all[T any](ctx context.Context, q *Queries, fields func(*T) []any, sql string, args ...any) (out []T, err error) {
	err = q.on(ctx, func(ctx context.Context, c conn) error {
		rows, err := c.Query(ctx, sql, storable(args)...)
		if err != nil {
			return translate(err)
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (v T, err error) {
			return v, row.Scan(fields(&v)...)
		})
		return translate(err)
	})
	return out, err
}

// self scans a single column into the value itself: a JSON object into a
// struct by its json tags, or a plain value.
func self[T any](v *T) []any { return []any{v} }

// scalar returns the only column of the first row.
func scalar[T any](ctx context.Context, q *Queries, sql string, args ...any) (T, error) {
	return one(ctx, q, self[T], sql, args...)
}

// source says where the rows of a kind come from and how one is read.
type source[T any] struct {
	from   string // what conditions and the order speak about
	alias  string // of the table in from that has the kind's id and seq
	joins  string // what row needs besides
	row    string // the columns of a row
	fields func(*T) []any
	newest bool // rows are listed from the newest to the oldest
}

func (s source[T]) order() string {
	if s.newest {
		return " ORDER BY " + s.alias + ".seq DESC"
	}
	return " ORDER BY " + s.alias + ".seq"
}

func (s source[T]) sql(cond string) string {
	return "SELECT " + s.row + " FROM " + s.from + " " + s.joins + " WHERE " + cond + s.order()
}

// where returns all rows that meet cond, by seq.
func (s source[T]) where(ctx context.Context, q *Queries, cond string, args ...any) ([]T, error) {
	return all(ctx, q, s.fields, s.sql(cond), args...)
}

// ref returns the row that ref, a uuid or an internal number, names. what is
// the word for it in the cks.NotFound error. also restricts the rows; it may be
// empty.
func (s source[T]) ref(ctx context.Context, q *Queries, what, ref, also string) (v T, err error) {
	err = errNone
	if cond, arg := byRef(s.alias, ref); cond != "" {
		v, err = one(ctx, q, s.fields, s.sql(cond+also), arg)
	}
	if errors.Is(err, errNone) {
		return v, cks.Errorf(cks.NotFound, "no %s %s", what, ref)
	}
	return v, err
}

// page returns one page of the rows that meet f, by seq, and the number of all
// of them. It costs one query; a page past the end costs a second.
func (s source[T]) page(ctx context.Context, q *Queries, f *filter, p cks.Page) (rows []T, total int, err error) {
	type counted struct {
		row   T
		total int
	}
	limit, offset := bounds(p)
	within := s.from + " WHERE " + f.sql()
	sql := "SELECT " + s.row + ", page.total FROM " + s.from +
		" JOIN (SELECT " + s.alias + ".id, count(*) OVER () AS total FROM " + within +
		s.order() + " LIMIT " + f.arg(limit) + " OFFSET " + f.arg(offset) + ") page" +
		" ON page.id = " + s.alias + ".id " + s.joins + s.order()
	found, err := all(ctx, q, func(c *counted) []any { return append(s.fields(&c.row), &c.total) }, sql, f.args...)
	if err != nil {
		return nil, 0, err
	}
	if len(found) == 0 && offset > 0 {
		total, err = scalar[int](ctx, q, "SELECT count(*) FROM "+within, f.args[:len(f.args)-2]...)
		return nil, total, err
	}
	for _, c := range found {
		rows, total = append(rows, c.row), c.total
	}
	return rows, total, nil
}

// bounds turns a page into LIMIT (nil: none) and OFFSET.
func bounds(p cks.Page) (limit *int64, offset int64) {
	size := int64(p.Size)
	if size < 0 {
		return nil, 0
	}
	if size == 0 {
		size = cks.DefaultPageSize
	}
	before := max(int64(p.Number), 1) - 1
	if before > math.MaxInt64/size {
		return &size, math.MaxInt64
	}
	return &size, before * size
}

// filter is a conjunction of conditions with their arguments.
type filter struct {
	conds []string
	args  []any
}

func (f *filter) arg(v any) string {
	f.args = append(f.args, v)
	return "$" + strconv.Itoa(len(f.args))
}

// and adds a condition, in which ? stands for v.
func (f *filter) and(cond string, v any) {
	f.conds = append(f.conds, strings.ReplaceAll(cond, "?", f.arg(v)))
}

// text adds a condition about v unless v is empty.
func (f *filter) text(cond, v string) {
	if v != "" {
		f.and(cond, v)
	}
}

// id adds "column = v" unless v is empty; what is no uuid matches nothing.
func (f *filter) id(column, v string) {
	if v != "" {
		f.ids(column, []string{v})
	}
}

// ids adds "column is one of vs".
func (f *filter) ids(column string, vs []string) {
	var good []string
	for _, v := range vs {
		if canonical := parseUUID(v); canonical != "" {
			good = append(good, canonical)
		}
	}
	f.and(column+" = ANY (?::text[]::uuid[])", good)
}

// ref adds a condition on alias's id or internal number unless v is empty.
func (f *filter) ref(alias, v string) {
	if v == "" {
		return
	}
	cond, arg := byRef(alias, v)
	if cond == "" {
		f.conds = append(f.conds, "false")
		return
	}
	f.and(strings.ReplaceAll(cond, "$1", "?"), arg)
}

func (f *filter) sql() string {
	if len(f.conds) == 0 {
		return "true"
	}
	return strings.Join(f.conds, " AND ")
}

// contains is the condition that column holds ? somewhere, in any case.
func contains(column string) string { return "position(lower(?) IN lower(" + column + ")) > 0" }

// byRef returns the condition, with $1, under which a row of alias is the one
// that ref names; "" when ref is neither a uuid nor a number.
func byRef(alias, ref string) (cond string, arg any) {
	if id := parseUUID(ref); id != "" {
		return alias + ".id = $1", id
	}
	if n, err := strconv.ParseInt(ref, 10, 64); err == nil {
		return alias + ".seq = $1", n
	}
	return "", nil
}

// parseUUID returns s in lower case if it is a uuid with dashes, else "".
func parseUUID(s string) string {
	if len(s) != 36 {
		return ""
	}
	id, err := uuid.Parse(s)
	if err != nil {
		return ""
	}
	return id.String()
}
