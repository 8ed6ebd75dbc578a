from bedrax.processes.colocated import DeviceList as DeviceList
