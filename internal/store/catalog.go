package store

import (
	"context"
	"errors"
	"regexp"

	"ckscale/internal/cks"
)

const (
	zoneJSON     = `json_build_object('id', z.id, 'name', z.name)`
	offeringJSON = `json_build_object('id', o.id, 'seq', o.seq, 'name', o.name, 'displaytext', o.display_text,
		'cores', o.cores, 'speed', o.speed_mhz, 'memory', o.memory_mb, 'created', o.created)`
	versionJSON = `json_build_object('id', k.id, 'name', k.name, 'semanticversion', k.version, 'isoid', k.iso_id,
		'isoname', k.iso_name, 'mincpunumber', k.min_cores, 'minmemory', k.min_memory_mb, 'enabled', k.enabled,
		'created', k.created)`
	templateJSON = `json_build_object('id', t.id, 'name', t.name, 'ready', t.ready, 'created', t.created)`
)

var (
	zoneRows     = source[cks.Zone]{from: "zones z", alias: "z", row: zoneJSON, fields: self[cks.Zone]}
	offeringRows = source[cks.Offering]{from: "service_offerings o", alias: "o", row: offeringJSON, fields: self[cks.Offering]}
	versionRows  = source[cks.KubernetesVersion]{from: "kubernetes_versions k", alias: "k", row: versionJSON,
		fields: self[cks.KubernetesVersion]}
	templateRows = source[cks.Template]{from: "templates t", alias: "t", row: templateJSON, fields: self[cks.Template]}
)

// named is the part of a catalog filter that all catalogs know.
func named(alias string, f cks.CatalogFilter) *filter {
	w := &filter{}
	w.ref(alias, f.ID)
	w.text(alias+".name = ?", f.Name)
	w.text(contains(alias+".name"), f.Keyword)
	return w
}

// Zones returns a page of the zones and the number of all that match.
func (q *Queries) Zones(ctx context.Context, f cks.CatalogFilter) ([]cks.Zone, int, error) {
	return zoneRows.page(ctx, q, named("z", f), f.Page)
}

// Offerings returns a page of the service offerings and the number of all that
// match.
func (q *Queries) Offerings(ctx context.Context, f cks.CatalogFilter) ([]cks.Offering, int, error) {
	w := named("o", f)
	w.conds = append(w.conds, "o.removed IS NULL")
	return offeringRows.page(ctx, q, w, f.Page)
}

var semantic = regexp.MustCompile(`^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}$`)

// Versions returns a page of the Kubernetes versions and the number of all that
// match. Every version is for all zones, so a ZoneID only has to exist. It
// fails with cks.Invalid when MinVersion is not of the form 1.2.3.
func (q *Queries) Versions(ctx context.Context, f cks.CatalogFilter) ([]cks.KubernetesVersion, int, error) {
	w := named("k", f)
	w.conds = append(w.conds, "k.removed IS NULL")
	if f.ZoneID != "" {
		zone := &filter{args: w.args}
		zone.ref("z", f.ZoneID)
		w.args = zone.args
		w.conds = append(w.conds, "EXISTS (SELECT FROM zones z WHERE "+zone.sql()+")")
	}
	if f.MinVersion != "" {
		if !semantic.MatchString(f.MinVersion) {
			return nil, 0, cks.Errorf(cks.Invalid, "Invalid version format for %s", f.MinVersion)
		}
		w.and("string_to_array(k.version, '.')::numeric[] >= string_to_array(?, '.')::numeric[]", f.MinVersion)
	}
	return versionRows.page(ctx, q, w, f.Page)
}

// Zone returns the zone with that uuid or internal number; else cks.NotFound.
func (q *Queries) Zone(ctx context.Context, ref string) (cks.Zone, error) {
	return zoneRows.ref(ctx, q, "zone", ref, "")
}

// Offering returns the service offering with that uuid or internal number; else
// cks.NotFound, also when it is removed.
func (q *Queries) Offering(ctx context.Context, ref string) (cks.Offering, error) {
	return offeringRows.ref(ctx, q, "service offering", ref, " AND o.removed IS NULL")
}

// Version returns the Kubernetes version with that uuid or internal number, if
// it is not removed; else cks.NotFound.
func (q *Queries) Version(ctx context.Context, ref string) (cks.KubernetesVersion, error) {
	return versionRows.ref(ctx, q, "Kubernetes version", ref, " AND k.removed IS NULL")
}

// Template returns the template that new clusters get: the newest one.
// cks.NotFound when there is none.
func (q *Queries) Template(ctx context.Context) (cks.Template, error) {
	t, err := scalar[cks.Template](ctx, q, `SELECT `+templateJSON+` FROM templates t ORDER BY t.seq DESC LIMIT 1`)
	if errors.Is(err, errNone) {
		err = cks.Errorf(cks.NotFound, "no template")
	}
	return t, err
}

// TemplateByRef returns the template with that uuid or internal number; else
// cks.NotFound.
func (q *Queries) TemplateByRef(ctx context.Context, ref string) (cks.Template, error) {
	return templateRows.ref(ctx, q, "template", ref, "")
}

// Templates returns a page of the templates and the number of all that match.
func (q *Queries) Templates(ctx context.Context, f cks.TemplateFilter) ([]cks.Template, int, error) {
	w := named("t", cks.CatalogFilter{ID: f.ID, Name: f.Name, Keyword: f.Keyword})
	if len(f.IDs) > 0 {
		w.ids("t.id", f.IDs)
	}
	return templateRows.page(ctx, q, w, f.Page)
}

// AddZone adds a zone; an empty ID is made up. cks.Invalid when the name is
// taken; so for its siblings below.
func (q *Queries) AddZone(ctx context.Context, z cks.Zone) (cks.Zone, error) {
	z, err := scalar[cks.Zone](ctx, q, `
		INSERT INTO zones AS z (id, name) VALUES (coalesce(nullif($1, '')::uuid, gen_random_uuid()), $2)
		RETURNING `+zoneJSON, z.ID, z.Name)
	return z, refuse(err, "zone cannot be added")
}

// AddOffering adds a service offering.
func (q *Queries) AddOffering(ctx context.Context, o cks.Offering) (cks.Offering, error) {
	added, err := scalar[cks.Offering](ctx, q, `
		INSERT INTO service_offerings AS o (id, name, display_text, cores, speed_mhz, memory_mb)
		VALUES (coalesce(nullif($1, '')::uuid, gen_random_uuid()), $2, $3, $4, $5, $6)
		RETURNING `+offeringJSON, o.ID, o.Name, o.DisplayText, o.Cores, o.SpeedMHz, o.MemoryMB)
	return added, refuse(err, "service offering %s cannot be added", o.Name)
}

// AddVersion adds a Kubernetes version; an empty ISOID is made up.
func (q *Queries) AddVersion(ctx context.Context, v cks.KubernetesVersion) (cks.KubernetesVersion, error) {
	added, err := scalar[cks.KubernetesVersion](ctx, q, `
		INSERT INTO kubernetes_versions AS k (id, name, version, iso_id, iso_name, min_cores, min_memory_mb, enabled)
		VALUES (coalesce(nullif($1, '')::uuid, gen_random_uuid()), $2, $3,
			coalesce(nullif($4, '')::uuid, gen_random_uuid()), $5, $6, $7, $8)
		RETURNING `+versionJSON, v.ID, v.Name, v.Version, v.ISOID, v.ISOName, v.MinCores, v.MinMemoryMB, v.Enabled)
	return added, refuse(err, "Kubernetes version %s cannot be added", v.Name)
}

// AddTemplate adds a template, which new clusters get from now on.
func (q *Queries) AddTemplate(ctx context.Context, t cks.Template) (cks.Template, error) {
	added, err := scalar[cks.Template](ctx, q, `
		INSERT INTO templates AS t (id, name, ready) VALUES (coalesce(nullif($1, '')::uuid, gen_random_uuid()), $2, $3)
		RETURNING `+templateJSON, t.ID, t.Name, t.Ready)
	return added, refuse(err, "template %s cannot be added", t.Name)
}

// Empty reports whether there are no zones, offerings, versions and clusters.
func (q *Queries) Empty(ctx context.Context) (bool, error) {
	return scalar[bool](ctx, q, `
		SELECT NOT (EXISTS (SELECT FROM zones) OR EXISTS (SELECT FROM service_offerings)
			OR EXISTS (SELECT FROM kubernetes_versions) OR EXISTS (SELECT FROM clusters))`)
}
