package main

import (
	"net/http"
	"slices"
	"testing"
)

// Public reports about clients whose scenarios are whole requests of their own.

// A value with "*" or a space is signed in two ways, by cloudstack-go with "*"
// bare, by the cluster-autoscaler as Go encodes it. Both are right; with another
// secret, neither is.
//
// Keeps: A09.
func TestStarAndSpaceInSignedValues(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	c.create("prod*1", "my cluster")
	wrong := c.as(keys{adminKeys.API, "wrong"})
	for keyword, name := range map[string]string{"prod*": "prod*1", "my cluster": "my cluster"} {
		autoscaler := c.call("listKubernetesClusters", "keyword="+keyword).list("kubernetescluster")
		if len(autoscaler) != 1 || autoscaler[0].text("name") != name {
			t.Errorf("%q of the cluster-autoscaler finds %v", keyword, autoscaler)
		}
		cloudstackGo, _ := c.listed(dialects[1], "keyword="+keyword)
		if len(cloudstackGo) != 1 || cloudstackGo[0].Name != name {
			t.Errorf("%q of cloudstack-go finds %v", keyword, cloudstackGo)
		}
		if status, a := wrong.send("listKubernetesClusters", "keyword="+keyword); status != http.StatusUnauthorized {
			t.Errorf("%q with a wrong secret: %d %v", keyword, status, a)
		}
		if r := wrong.speak(dialects[1], "listKubernetesClusters", "keyword="+keyword); r.status != http.StatusUnauthorized {
			t.Errorf("%q with a wrong secret: %d %s", keyword, r.status, r.raw)
		}
	}
}

// A parameter in any mixture of cases is the same parameter: it is never
// ignored, which would carry out something else.
//
// Keeps: A10.
func TestMixedCaseParametersCount(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_ENDPOINT_URL": "https://api.example.test/client/api"})
	id, w := c.id(), c.workers()
	c.do("scaleKubernetesCluster", "id="+id, "nodeIds="+w[1])
	if left := c.workers(); !slices.Equal(left, w[:1]) {
		t.Errorf("nodeIds of %s leaves %v of %v", w[1], left, w)
	}
	if v := c.do("scaleKubernetesCluster", "ID="+id, "SIZE=3").object("kubernetescluster"); v["size"] != 3.0 {
		t.Errorf("SIZE=3 gives %v", v)
	}
	v := c.do("scaleKubernetesCluster", "Id="+id, "autoScalingEnabled=true", "minSize=1", "MAXsize=4").object("kubernetescluster")
	if v["autoscalingenabled"] != true || v["minsize"] != 1.0 || v["maxsize"] != 4.0 {
		t.Errorf("autoScalingEnabled=true gives %v", v)
	}
	c.refused("must be passed", "scaleKubernetesCluster", "id="+id, "node_ids="+w[0]) // another name is another parameter
}

// However old a job is, its id still finds it: the id that a client was given
// exists (docs/architecture.md).
//
// Keeps: §2.3/expiry.
func TestOldJobsAreKept(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "50ms", "CKSCALE_LEASE": "1s"})
	db := connect(t, l.url)
	id, w := l.id(), l.workers()
	job := l.start("scaleKubernetesCluster", "id="+id, "size=3")
	l.ended(job)
	if _, err := db.Exec(t.Context(), "UPDATE jobs SET created = created - interval '1 year', completed = completed - interval '1 year'"); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"Stopped", "Running"} { // what looks around by itself has done so twice
		l.simulate("vm.set", state, "vmid="+w[0])
		l.inState(map[string]string{"Stopped": "Alert", "Running": "Running"}[state])
	}
	if old := l.ended(job); old["jobstatus"] != 1.0 || old.object("jobresult").object("kubernetescluster")["size"] != 3.0 {
		t.Errorf("the job is now %v", old)
	}
}

// What is wrong with a request itself, and whose cluster it is, is told at
// once: no job is made of it (cks.md §2.4).
//
// Keeps: §2.4/submission, §2.4/denied.
func TestWhatIsRefusedAtOnceMakesNoJob(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	db := connect(t, l.url)
	ann, id, w := l.account("ann"), l.id(), l.workers()[0]
	const nobody = "00000000-0000-4000-8000-000000000000"
	for _, params := range [][]string{
		{"size=3"}, {"id=", "size=3"}, {"id=x", "size=3"}, {"id=" + nobody, "size=3"},
		{"id=" + id, "size="}, {"id=" + id, "size=abc"}, {"id=" + id, "nodeids=" + w + "," + nobody}, {"id=" + id, "nodeids=" + w + ",x"},
		{"id=" + id, "serviceofferingid=" + nobody}, {"id=" + id, "nodeofferings=abc"}, {"id=" + id, "size=3", "customjobid=x"},
	} {
		if status, a := l.send("scaleKubernetesCluster", params...); status != 431 {
			t.Errorf("%q: %d %v", params, status, a)
		}
	}
	for _, params := range [][]string{{"size=3"}, {"size=0"}, {"nodeids=" + w}, nil} {
		if status, a := ann.send("scaleKubernetesCluster", append(params, "id="+id)...); status != 531 {
			t.Errorf("ann's %q: %d %v", params, status, a)
		}
	}
	if n := ask[int](t, db, "SELECT count(*)::int FROM jobs"); n != 0 {
		t.Errorf("%d jobs were made", n)
	}
}

// While a job is under way, neither its cluster nor its VM shows it: what is
// inside could only be older than what is outside (cks.md §2.6, §2.7, A05).
//
// Keeps: A05, §2.6/no-job, §2.7/job.
func TestJobsAreNotShownInside(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_RETRY_WAIT": "4s"})
	id, w := c.id(), c.workers()[0]
	c.simulate("node.join", "fail")          // until it is cleared
	c.simulate("vm.stop", "fail", "count=1") // and is tried again
	scale := c.start("scaleKubernetesCluster", "id="+id, "size=3")
	stop := c.start("stopVirtualMachine", "id="+w)
	vms := c.call("listVirtualMachines").list("virtualmachine")
	v := c.cluster()
	for _, object := range append(append(vms, v.list("virtualmachines")...), v) {
		if object["jobid"] != nil || object["jobstatus"] != nil {
			t.Errorf("%s shows job %v with status %v", object.text("name"), object["jobid"], object["jobstatus"])
		}
	}
	if v.text("state") != "Scaling" || len(c.call("listAsyncJobs").list("asyncjobs")) != 2 {
		t.Errorf("the cluster is %s", v.text("state"))
	}
	c.simulate("node.join", "clear")
	for job, name := range map[string]string{scale: "kubernetescluster", stop: "virtualmachine"} {
		ended := c.ended(job)
		v := ended.object("jobresult").object(name)
		if ended["jobstatus"] != 1.0 || v.text("id") == "" || v["jobid"] != nil || v["jobstatus"] != nil {
			t.Errorf("job %v", ended)
		}
	}
}
