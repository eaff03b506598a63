process JAXALIGN_SPLIT {
    tag "$meta.id"
    label 'process_medium'

    // No `container`: no image is published.
    conda "${moduleDir}/environment.yml"

    input:
    tuple val(meta), path(fasta)
    val min_identity
    val parts

    output:
    tuple val(meta), path("*.split.tsv")       , emit: split
    tuple val(meta), path("*.certificate.json"), emit: certificate
    tuple val(meta), path("*.report.html")     , emit: report
    path "versions.yml"                        , emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args   = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    jaxalign split \\
        $fasta \\
        --min-identity $min_identity \\
        --parts $parts \\
        --threads $task.cpus \\
        -o ${prefix}.split.tsv \\
        --certificate ${prefix}.certificate.json \\
        --report ${prefix}.report.html \\
        $args

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        jaxalign: \$(jaxalign --version)
    END_VERSIONS
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.split.tsv ${prefix}.certificate.json ${prefix}.report.html

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        jaxalign: \$(jaxalign --version)
    END_VERSIONS
    """
}
