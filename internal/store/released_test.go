package store_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"testing"

	"ckscale/migrations"
)

// released are the migrations that databases have gone through, by their SHA-256.
// None is edited any more: what has to change is a new migration, and the
// release before must go on working on its result.
var released = map[string]string{
	"0001_init.up.sql":             "f9d1e4fc6ff8efdfe29ca95bb93708e9129d19f08f445477737f88b9624271a1",
	"0001_init.down.sql":           "5af5066aac07652644980f7352e077bf99c678c838213037f66035581ba4adbe",
	"0002_sealed_secrets.up.sql":   "d65bbd1622d10124c50fe3483c98997c7bd29eb3d09b05703da54a27bb9dc9ee",
	"0002_sealed_secrets.down.sql": "89cbcbcfce138f67df26b25f09806c227a530edc7be91dcd5165ba6fdf4cd391",
	"0003_events.up.sql":           "55232525949e4ddb7b651ee3df6e1ccb7cd71b8e3e231e0be0e9f1976ca816f6",
	"0003_events.down.sql":         "c36c4ee285235acc0c87a3c01b5ccdb93ce4fc3e47a30547796b8cb2e61dd649",
	"0004_cancel.up.sql":           "87cc0251dad714946acaf551a7881a1bd6da103186684a942aabe738c40e4c4d",
	"0004_cancel.down.sql":         "8c4da0b819685843ef6c04ed8663ed026d745535ed073628f9bf831bca77af67",
	"0005_manual_upgrade.up.sql":   "7075abb307dc8fd3fddd1b5f43d2a4773d423a4a77b55fd9f6753274c2613505",
	"0005_manual_upgrade.down.sql": "b762d62f3da995496acb6176f4015f661f3a57c09f288bd0c7275872b800beb6",
	"0007_directory.up.sql":        "38abea02cb0c822562139836da9a06c961f3d829432a7eada825de8c822ef9e5",
	"0007_directory.down.sql":      "1b27a66f595e28b246bcccf74f6673c4f31ccf50ef0684ec7b9f95dd2da31862",
	"0009_progress.up.sql":         "be09d7afbdb575e1e0a50db75331f4a4a10aa5d5235a1879bc34a89072f70fc3",
	"0009_progress.down.sql":       "ff8a1f18fa8a0bf1c6cebff5371a593691ec28998cda885beb6427358b4e4490",
	"0010_left_nodes.up.sql":       "2e82d496ee1c55e017dfd4852ab77ed180b62c852faf7c0700b233d36f74d16a",
	"0010_left_nodes.down.sql":     "5e10783e6a827cb6a372094cbd1afd6c589fba677a784c537d49cbcfc7cbf698",
	"0008_create.up.sql":           "620c8eeb1f917ce8f80c353e6aeb3eab3251fb8514d132139dbc445796baaa68",
	"0008_create.down.sql":         "1cb4a5cd95debac91d2a1db84684f907d37ffc3ca1d4eed6b632f5b65a0584d7",
	"0006_plain_vms.up.sql":        "e08a62a011238ebe527ca03979d1653717c0380ba90c985075ef561ad6430391",
	"0006_plain_vms.down.sql":      "bfe117f5e7e43e8516f074209e8bdb07989c2f3e6d9d91b0a80fad2fe3301019",
}

// A database that was migrated long ago, and one that is new, have the same
// schema.
func TestReleasedMigrationsAreNotEdited(t *testing.T) {
	t.Parallel()
	files := must[[]string](t)(fs.Glob(migrations.FS, "*.sql"))
	for _, name := range files {
		sum := fmt.Sprintf("%x", sha256.Sum256(must[[]byte](t)(migrations.FS.ReadFile(name))))
		switch want := released[name]; {
		case want == "":
			t.Errorf("%s is new: list it here with %s", name, sum)
		case want != sum:
			t.Errorf("%s was edited (%s)", name, sum)
		}
	}
	if len(files) != len(released) {
		t.Errorf("there are %d of %d migrations", len(files), len(released))
	}
}
