DROP TABLE IF EXISTS world_documents, jobs, vms, clusters, templates, kubernetes_versions, service_offerings, zones, accounts, domains CASCADE;
