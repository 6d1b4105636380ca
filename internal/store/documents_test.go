package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

type counted struct {
	N    int    `json:"n"`
	Text string `json:"text,omitempty"`
}

// put is a change that replaces a document whatever it was.
func put(doc string, due time.Time) func([]byte, time.Time) ([]byte, time.Time, error) {
	return func([]byte, time.Time) ([]byte, time.Time, error) {
		if doc == "" {
			return nil, due, nil
		}
		return []byte(doc), due, nil
	}
}

// Many writers of one document come one after the other, also the first ones
// and those between which it is deleted.
func TestDocumentWritersAreSerialised(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	const writers, each = 16, 6
	for _, err := range together(writers, func(i int) error {
		for range each {
			err := st.ChangeDocument(t.Context(), "k", func(doc []byte, now time.Time) ([]byte, time.Time, error) {
				var c counted
				if doc != nil {
					if err := json.Unmarshal(doc, &c); err != nil {
						return nil, time.Time{}, err
					}
				}
				c.N++
				next, err := json.Marshal(c)
				return next, time.Time{}, err
			})
			if err == nil && i == 0 { // deleting and making must not break the row
				err = st.ChangeDocument(t.Context(), "other", put("", time.Time{}))
			}
			if err == nil && i == 1 {
				err = st.ChangeDocument(t.Context(), "other", put(`{"n":1}`, time.Time{}))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}) {
		ok(t, err)
	}
	doc, now, err := st.ReadDocument(t.Context(), "k")
	ok(t, err)
	var c counted
	ok(t, json.Unmarshal(doc, &c))
	if c.N != writers*each {
		t.Errorf("%d of %d changes are there", c.N, writers*each)
	}
	if age := read[time.Time](t, st, `SELECT clock_timestamp()`).Sub(now); age < 0 || age > time.Minute {
		t.Errorf("the time is %s old", age)
	}
}

// Two first writers of a document: the second one waits and then finds it.
func TestDocumentIsMadeOnce(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	seen := make(chan string, 1)
	done := make(chan error, 1)
	ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
		if err := q.ChangeDocument(t.Context(), "k", put(`{"n":1}`, time.Time{})); err != nil {
			return err
		}
		go func() {
			done <- st.ChangeDocument(t.Context(), "k", func(doc []byte, _ time.Time) ([]byte, time.Time, error) {
				seen <- string(doc)
				return doc, time.Time{}, nil
			})
		}()
		waitBlocked(t, st, 1)
		return nil
	}))
	ok(t, <-done)
	if got := <-seen; got != `{"n": 1}` {
		t.Errorf("the second writer saw %q", got)
	}
}

func TestUnchangedDocumentIsNotWritten(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	world := st.Subscribe(t.Context(), store.TopicWorld)
	row := func() string {
		return read[string](t, st, `SELECT coalesce(max(xmin::text || ':' || ctid::text), '') FROM world_documents`)
	}
	due := time.Now().Add(time.Hour)
	for _, step := range []struct {
		what    string
		doc     string
		due     time.Time
		changes bool
	}{
		{"none stays none", "", time.Time{}, false},
		{"made", `{"n": 1, "text": "a"}`, due, true},
		{"same in other words", `{"text":"a",   "n":1}`, due, false},
		{"other time", `{"n":1,"text":"a"}`, due.Add(time.Second), true},
		{"no time", `{"n":1,"text":"a"}`, time.Time{}, true},
		{"still no time", `{"n":1,"text":"a"}`, time.Time{}, false},
		{"other document", `{"n":2,"text":"a"}`, time.Time{}, true},
		{"deleted", "", time.Time{}, true},
		{"still none", "", time.Time{}, false},
	} {
		before := row()
		ok(t, st.ChangeDocument(t.Context(), "k", put(step.doc, step.due)))
		if !step.changes {
			silent(t, world)
			if row() != before {
				t.Errorf("%s: the row was written", step.what)
			}
			continue
		}
		eventually(t, world, "k")
		doc, _, err := st.ReadDocument(t.Context(), "k")
		ok(t, err)
		if (doc == nil) != (step.doc == "") {
			t.Errorf("%s: document is %s", step.what, doc)
		}
	}
}

func TestFailedChangeChangesNothing(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	broken := errors.New("broken")
	fail := func(doc []byte, _ time.Time) ([]byte, time.Time, error) { return []byte(`{}`), time.Time{}, broken }
	wantErr(t, st.ChangeDocument(t.Context(), "k", fail), broken)
	if keys := must[[]string](t)(st.DocumentKeys(t.Context())); len(keys) != 0 {
		t.Errorf("keys are %v", keys)
	}
	ok(t, st.ChangeDocument(t.Context(), "k", put(`{"n":1}`, time.Time{})))
	wantErr(t, st.ChangeDocument(t.Context(), "k", fail), broken)
	doc, _, err := st.ReadDocument(t.Context(), "k")
	ok(t, err)
	if string(doc) != `{"n": 1}` {
		t.Errorf("document is %s", doc)
	}
}

func TestDocumentKeepsWhatItCan(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	text := "nul \x00, escape \\u0000, quote \", bad \xff"
	in := must[[]byte](t)(json.Marshal(counted{Text: text}))
	ok(t, st.ChangeDocument(t.Context(), "k", put(string(in), time.Time{})))
	doc, _, err := st.ReadDocument(t.Context(), "k")
	ok(t, err)
	var got counted
	ok(t, json.Unmarshal(doc, &got))
	if want := strings.NewReplacer("\x00", "\uFFFD", "\xff", "\uFFFD").Replace(text); got.Text != want {
		t.Errorf("text is %q, want %q", got.Text, want)
	}
}

func TestNextDocument(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	next := func() (string, time.Duration, bool) {
		t.Helper()
		key, in, some, err := st.NextDocument(t.Context())
		ok(t, err)
		return key, in, some
	}
	now := read[time.Time](t, st, `SELECT clock_timestamp()`)
	ok(t, st.ChangeDocument(t.Context(), "never", put(`{}`, time.Time{})))
	if key, _, some := next(); some {
		t.Errorf("%s is due", key)
	}
	ok(t, st.ChangeDocument(t.Context(), "later", put(`{}`, now.Add(time.Hour))))
	ok(t, st.ChangeDocument(t.Context(), "soon", put(`{}`, now.Add(30*time.Minute))))
	if key, in, some := next(); !some || key != "soon" || in > 30*time.Minute || in < 29*time.Minute {
		t.Errorf("%s is due in %s, %t", key, in, some)
	}
	ok(t, st.ChangeDocument(t.Context(), "past", put(`{}`, now.Add(-time.Hour))))
	if key, in, some := next(); !some || key != "past" || in != 0 {
		t.Errorf("%s is due in %s, %t", key, in, some)
	}
	diff(t, []string{"later", "never", "past", "soon"}, must[[]string](t)(st.DocumentKeys(t.Context())))
}
