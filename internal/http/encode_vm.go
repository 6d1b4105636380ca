package http

import (
	"cmp"
	"net/netip"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// encodeVM returns a VM's own API object (cks.md §2.8).
func encodeVM(v cks.VMView) api.VirtualMachine {
	out := encodeMachine(v.VM, v.Account, v.Zone, v.NetworkID, v.NetworkName)
	out.Domainpath = v.Account.DomainPath
	out.Serviceofferingid, out.Serviceofferingname = v.Offering.ID, v.Offering.Name
	out.Keypairs = v.VM.Keypair
	out.Cpunumber, out.Cpuspeed, out.Memory = v.VM.Cores, v.Offering.SpeedMHz, v.VM.MemoryMB
	if v.Template != nil {
		out.Templateid, out.Templatename = v.Template.ID, v.Template.Name
	}
	return out
}

// encodeNode returns an entry of a cluster's virtualmachines (cks.md §2.7).
func encodeNode(v cks.ClusterView, vm cks.VM) api.VirtualMachine {
	out := encodeMachine(vm, v.Account, v.Zone, v.Cluster.NetworkID, v.Cluster.NetworkName)
	etcd := vm.Role == cks.Etcd
	out.Isexternalnode, out.Isetcdnode = &vm.External, &etcd
	if !etcd {
		out.Kubernetesnodeversion = vm.NodeVersion
	}
	out.Keypairs = cmp.Or(vm.Keypair, v.Cluster.Keypair)
	if vm.External {
		out.Manualupgrade = &vm.Manual
	}
	return out
}

// encodeMachine returns what both have in common.
func encodeMachine(vm cks.VM, owner cks.Account, zone cks.Zone, networkID, networkName string) api.VirtualMachine {
	return api.VirtualMachine{
		Id:          vm.ID,
		Name:        vm.Name,
		Displayname: cmp.Or(vm.DisplayName, vm.Name),
		Account:     ownName(owner),
		Projectid:   owner.ProjectID,
		Project:     owner.Project,
		Userid:      owner.UserID,
		Username:    owner.Name, // an account has one user, of its name
		Domainid:    owner.DomainID,
		Domain:      owner.Domain,
		Created:     date(vm.Created),
		Lastupdated: date(vm.Updated),
		State:       string(vm.State),
		Zoneid:      zone.ID,
		Zonename:    zone.Name,
		Hypervisor:  "Simulator",
		Vmtype:      vmType(vm),
		Ipaddress:   vm.IPAddress,
		Nic:         []api.NIC{encodeNIC(vm, networkID, networkName)},
	}
}

// vmType tells the VMs that the service made from those that it did not.
func vmType(vm cks.VM) string {
	if vm.AccountID != "" {
		return "User"
	}
	return "cksnode"
}

func encodeNIC(vm cks.VM, networkID, networkName string) api.NIC {
	nic := api.NIC{
		// The NIC is not recorded; its id follows from the VM's and so never changes.
		Id:              uuid.NewSHA1(uuid.NameSpaceOID, []byte("nic 0 of "+vm.ID)).String(),
		Networkid:       networkID,
		Networkname:     networkName,
		Ipaddress:       vm.IPAddress,
		Macaddress:      vm.MACAddress,
		Type:            "Isolated",
		Traffictype:     "Guest",
		Isdefault:       true,
		Deviceid:        "0",
		Secondaryip:     []map[string]any{},
		Extradhcpoption: []map[string]any{},
	}
	nic.Netmask, nic.Gateway = guestNetwork(vm.IPAddress)
	return nic
}

// guestNetwork returns the netmask and gateway of a guest network: a /16 whose
// last address is the gateway's. Nothing for what is no IPv4 address.
func guestNetwork(address string) (netmask, gateway string) {
	ip, err := netip.ParseAddr(address)
	if err != nil || !ip.Is4() {
		return "", ""
	}
	b := ip.As4()
	return "255.255.0.0", netip.AddrFrom4([4]byte{b[0], b[1], 255, 254}).String()
}
