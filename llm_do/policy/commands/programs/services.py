"""The grammar of programs that talk to clusters, containers, databases and servers; `llm_do.policy.commands.grammar`
reads it."""

from __future__ import annotations

__all__ = ["TABLE"]

TABLE = r"""
curl: url*
    flags -sSfLIiGvgNn46#0 --silent --show-error --fail --location --head --include --get --verbose --globoff
    flags --compressed --fail-with-body --no-progress-meter --progress-bar --no-buffer --ipv4 --ipv6 --http1.1 --http2
    flags --http1.0 --tcp-nodelay --raw --no-keepalive --fail-early --tlsv1.2 --tlsv1.3
    method -X --request
    text -mAreyY --max-time --user-agent --referer --range --connect-timeout --retry --retry-delay
    text --retry-max-time --max-redirs --limit-rate --max-filesize --speed-limit
    data -H --header --url-query
    body -dF --data --data-raw --data-binary --data-ascii --json --form --form-string
    url --url
    choice -w (?!@)(?!.*%output).*
    choice -o /dev/null
    choice --output /dev/null
    choice --write-out (?!@)(?!.*%output).*
wget: url*
    flags -qSvd46N --quiet --server-response --spider --no-verbose --verbose --no-clobber
    text -tTU --tries --timeout --header --user-agent --wait --max-redirect
http, https, httpie, xh: text*
    flags -vhbjf --verbose --headers --body --json --form --follow --check-status --ignore-stdin
    text -p --print --pretty --timeout
ping, ping6: text*
    flags -nqv46
    text -ciWwst
dig, nslookup, host, whois: text*
    flags -46xt
nc, ncat: text*
    flags -zvnu46lk
    text -wpsq
ssh-keyscan: text*
    flags -46v
    text -Tpt
scp, sftp: any*
    flags -346ABCpqrTv
    text -ciJlPX
rsync: any*
    flags -avrnzPhtpglDxucHAXSqiWROb --archive --verbose --recursive --dry-run --compress --progress --human-readable
    flags --stats --checksum --itemize-changes --list-only --partial --update --ignore-existing
    text --exclude --include --bwlimit --max-size --min-size --timeout
kubectl, oc: sub
    text -n --namespace
kubectl get, oc get: text*
    use @kubectl
    flags -Awv --all-namespaces --watch --show-labels --no-headers --ignore-not-found --watch-only --show-kind
    text -lL --selector --field-selector --sort-by --label-columns --chunk-size --template
    path -f --filename -k --kustomize
kubectl describe, oc describe: text*
    use @kubectl
    flags -A --all-namespaces --show-events
    text -l --selector
    path -f --filename
kubectl logs, oc logs: text*
    use @kubectl
    flags -fp --follow --previous --timestamps --all-containers --prefix --ignore-errors --all-pods
    text -cl --container --selector --tail --since --since-time --limit-bytes --max-log-requests
kubectl top, kubectl explain, kubectl api-resources, kubectl api-versions, kubectl version: text*
    use @kubectl
    flags -A --all-namespaces --containers --recursive --namespaced --no-headers --client
    text -l --selector --sort-by --api-version --api-group --verbs
kubectl cluster-info: text*
    use @kubectl
    flags -A --all-namespaces --containers --recursive --namespaced --no-headers --client
    text -l --selector --sort-by --api-version --api-group --verbs
kubectl events, kubectl auth, kubectl rollout, kubectl diff, kubectl wait: text*
    use @kubectl
    flags -Aw --all-namespaces --watch --all --quiet -q --list
    text -l --selector --for --types --timeout --revision
    path -f --filename
kubectl config: sub
kubectl config view, kubectl config get-contexts, kubectl config current-context, kubectl config get-clusters: text*
    flags --minify --no-headers
    use @kubectl-output
kubectl apply, kubectl create, kubectl delete, kubectl replace, kubectl patch, kubectl scale, kubectl label: text*
    use @kubectl
    flags --wait --server-side -R --recursive --overwrite
    text --dry-run --validate -l --selector -p --patch --type --replicas --timeout
    any -f --filename -k --kustomize
kubectl exec, kubectl debug: text ; dashed launch
    flags -itq --stdin --tty --quiet
    text -cn --container --namespace
@kubectl: text*
    use @kubectl-output
    text -n --namespace --request-timeout
@kubectl-output: text*
    choice -o =?(?:json|yaml|wide|name|(?:jsonpath|jsonpath-as-json|custom-columns|go-template|template)=.*)
    choice --output (?:json|yaml|wide|name|(?:jsonpath|jsonpath-as-json|custom-columns|go-template|template)=.*)
helm: sub
helm list, helm status, helm history, helm show, helm search, helm get, helm template, helm lint, helm version: text*
    flags -Aaq --all-namespaces --all --short --devel --strict
    text -no --namespace --output --filter --version --max --set --set-string
    path -f --values
docker, podman, nerdctl: sub
    flags --version -v
docker ps, docker images, docker container, docker image, docker volume, docker network, docker version: text*
    use @docker
docker info: text*
    use @docker
docker logs, docker inspect, docker top, docker port, docker stats, docker history, docker diff, docker events: text*
    use @docker
podman ps, podman images, podman logs, podman inspect: text*
    use @docker
docker build: any
    flags -q --pull --no-cache --quiet
    text -t --tag --target --progress --platform --build-arg --label
    path -f --file
docker start, docker stop, docker restart, docker rm, docker rmi, docker pull, docker push, docker tag: text*
    flags -fqv --force --quiet --volumes
    text -t --time --platform
docker kill: text*
    flags -fqv --force --quiet --volumes
    text -t --time --platform
docker compose, docker-compose, podman-compose: sub
docker compose ps, docker compose logs, docker compose config, docker compose images, docker compose top: text*
    use @docker
docker compose up, docker compose down, docker compose build, docker compose restart, docker compose pull: text*
    flags -dqv --detach --build --no-deps --remove-orphans --volumes --wait --no-cache --quiet
    text -t --timeout --scale
docker-compose ps, docker-compose logs, docker-compose config, docker-compose up, docker-compose down: text*
    use @docker
docker run, docker exec, docker compose exec, docker compose run, podman run, podman exec: text launch
    flags -itd --interactive --tty --rm --detach
    text --name
@docker: text*
    flags -aqfltsde --all --quiet --no-trunc --follow --timestamps --details --digests --size --latest --services
    flags --no-color --no-stream --no-log-prefix --build --detach
    text -n --filter --format --tail --since --until --last --type --index
terraform, tofu: sub
terraform plan, terraform validate, terraform show, terraform output, terraform fmt: text* ; single
    flags -json -no-color -check -diff -recursive -detailed-exitcode -raw -destroy -refresh-only -compact-warnings
    text -lock -refresh -target -input -parallelism -lock-timeout
terraform version: text* ; single
    flags -json -no-color -check -diff -recursive -detailed-exitcode -raw -destroy -refresh-only -compact-warnings
    text -lock -refresh -target -input -parallelism -lock-timeout
terraform state: sub
terraform state list, terraform state show: text* ; single
    flags -no-color
    text -id
terraform init, terraform apply, terraform providers, terraform workspace, terraform graph: text* ; single
    flags -no-color -upgrade -json -compact-warnings
    text -input -lock -backend -parallelism
gh: sub
    flags --version
gh pr, gh issue, gh run, gh repo, gh release, gh workflow, gh label, gh search, gh status, gh auth, gh project: text*
    flags -cdwa --comments --web --log --log-failed --watch --exit-status --name-only --patch --draft --fill --verbose
    flags --compact --delete-branch --squash --merge --rebase --approve --all --required
    jq -q --jq
    text -LRsSAlBHtbj --limit --repo --state --search --author --label --base --head --title --body --json
    text --template --assignee --branch --workflow --job --status --milestone --color --user --event --owner --sort
    text --order --created
gh api: text*
    flags -i --include --paginate --silent --slurp --verbose
    jq -q --jq
    text -tXp --template --method --preview
    data -fFH --raw-field --field --header
glab: sub
glab mr, glab issue, glab ci: text*
    flags -cdwa --comments
    text -RsSAl --repo --state
ansible-playbook: any*
    flags -CDv --check --diff --syntax-check --list-tasks --list-hosts --list-tags
    text -ltf --limit --tags --skip-tags --forks --start-at-task
aws, gcloud, az: text*
    text --output --query --region --format --filter --limit --max-items --page-size --profile --project --zone
    flags --no-cli-pager --no-paginate --quiet --recursive --human-readable --summarize
sqlite3: path sql* ; single
    flags -json -csv -readonly -header -noheader -line -list -column -table -markdown -box -html -quote -bail -batch
    flags -safe
    text -separator -nullvalue -newline
psql: text*
    flags -AtqxXlnwe --no-align --tuples-only --quiet --expanded --no-psqlrc --list --csv --no-password
    text -hpUdFRPT --host --port --username --dbname --field-separator --pset
    sql -c --command
mysql, mariadb: text*
    flags -BNstE --batch --skip-column-names --silent --table --vertical
    text -huPD --host --user --port --database
    sql -e --execute
redis-cli: text*
    flags --raw --no-raw --scan --stat
    text -hpn --pattern
systemctl: text*
    flags -aqln --all --no-pager --quiet --full --failed --user --no-legend --plain
    text -tpo --type --property --output --state
journalctl: text*
    flags -befxkqr --no-pager --reverse --dmesg --catalog --quiet --user --no-hostname --utc
    text -unpogtS --unit --lines --priority --since --until --output --grep --boot
"""
